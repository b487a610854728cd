// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/kernels/Zoo.h"

#include <functional>
#include <vector>

/// Parts of large problems, for judging by a reference that computes plainly on the host: the parts are problems of the
/// same kernel, and the outputs of a part are part of the outputs.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon::zoo {

/// For arguments of the entry's problems; no function where none is known.
std::function<std::vector<Arguments>(const Arguments &)> samplesOf(const Entry &entry);

} // namespace tenon::zoo
#pragma GCC visibility pop
