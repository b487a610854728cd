# SPDX-License-Identifier: Apache-2.0
"""What cpu_peers.py and gpu_peers.py have in common: questions and answers, JSON objects, one a line."""
import json
import os
import sys


class NoSuchPeer(Exception):
    """The case has no such peer: said in the answer, never skipped."""


def explained(action):
    """The answer that `action` gives, or what went wrong."""
    try:
        return action()
    except NoSuchPeer as error:
        return {"error": str(error), "none": True}
    except ImportError as error:
        return {"error": f"not installed: {error}", "missing": True}
    except Exception as error:  # whatever it is, the other side must hear of it
        return {"error": f"{type(error).__name__}: {str(error).strip()[:500]}"}


def serve(greeting, make_peers, answer, questions, answers):
    """Greets, with the versions of what make_peers() needs or why it is not there, and answers until there are no more
    questions: answer(peers, question)."""
    def say(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    peers, missing = None, None
    try:
        peers = make_peers()
    except Exception as error:
        missing = str(error) or type(error).__name__
    greeting = {**greeting, "versions": {"python": sys.version.split()[0]}}
    if missing:
        greeting["missing"] = missing
    else:
        greeting["versions"].update(peers.versions())
    say(greeting)
    for line in questions:
        if not line.strip():
            continue
        try:
            question = json.loads(line)
        except ValueError as error:
            say({"error": f"no JSON: {error}"})
            continue
        if missing:
            say({"error": f"not installed: {missing}", "missing": True})
        else:
            say(explained(lambda: answer(peers, question)))


def standard_answers():
    """Whatever libraries print goes to the standard error stream: the standard output is for answers alone."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers
