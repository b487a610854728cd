// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/Workspace.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/Tensor.h"

#include <cstring>
#include <memory>
#include <string>

namespace tenon {

void *zeroedWorkspace(size_t bytes) {
  thread_local std::unique_ptr<Buffer> workspace;
  if (bytes == 0)
    return nullptr;
  if (!workspace || workspace->bytes() < bytes) {
    workspace.reset(); // first, so that the old and the new are not needed at once
    try {
      workspace = std::make_unique<Buffer>(bytes);
    } catch (const Error &) { // speaks of a tensor, of which the caller knows nothing
      throw Error("cannot allocate " + std::to_string(bytes) +
                  " bytes of host memory for the workspace of a kernel; use a smaller one");
    }
  }
  return std::memset(workspace->begin(), 0, bytes);
}

} // namespace tenon
