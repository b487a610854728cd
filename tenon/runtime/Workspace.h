// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tenon {

/// Scratch memory for one launch: zeroed, 64-byte aligned, null for 0 bytes. It belongs to the calling thread, which keeps
/// it for the next launch; valid until that. A stream works on one thread of its own, so this is the stream's workspace.
void *zeroedWorkspace(size_t bytes);

} // namespace tenon
