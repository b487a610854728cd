// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/Workspace.h"

#include "tenon/runtime/Tensor.h"

#include <cstring>
#include <memory>

namespace tenon {

void *zeroedWorkspace(size_t bytes) {
  thread_local std::unique_ptr<Buffer> workspace;
  if (bytes == 0)
    return nullptr;
  if (!workspace || workspace->bytes() < bytes) {
    workspace.reset(); // first, so that the old and the new are not needed at once
    workspace = std::make_unique<Buffer>(bytes);
  }
  return std::memset(workspace->begin(), 0, bytes);
}

} // namespace tenon
