# SPDX-License-Identifier: Apache-2.0
# wrong-use.sh COMMAND: runs it with one mistake after another; after what it says, its status and the number of lines.
tenon=$1
try() {
  echo "\$ tenon${*:+ }$*"
  message=$($tenon "$@" 2>&1 >/dev/null)
  status=$?
  message=$(echo "$message" | grep -v 'WARNING: AddressSanitizer failed to allocate') # in a build with sanitizers
  echo "$message"
  echo "status $status, $(echo "$message" | wc -l) line"
}
try
try fly
try run
try run sofmax
try tune linaer
try bench nothing_like_it
try run softmax --shape 12xa
try run softmax --shape -1x5
try run softmax --shape 3
try run softmax --shape 99999999999x99999999999
try run softmax --shape 10000000x10000000
try run softmax --dtype float
try run softmax --dtype u8
try run softmax --param columns=4
try run softmax --param cols=four
try run softmax --shape 3x100 --param cols=16
try run softmax --target gpu
try run softmax --shape 1x1 --isa mmx
try run softmax --threads -1
try bench softmax --seconds abc
try bench softmax --seconds nan
try bench gpu --seconds 36001
try tune softmax --seconds abc
try tune softmax --rounds 1.5
try run softmax --shape 1x1 --shape 2x2
try run softmax --fast
try verify
try verify softmax --all
try bench --all --shape 1x1
try list --json /nowhere/report.json
try list --json /
