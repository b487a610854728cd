// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Names for NVIDIA's tools (Nsight), by their NVTX protocol: a tool names a library in NVTX_INJECTION64_PATH, which is
/// given a table of slots to put its functions into. Without a tool there is nothing to load and nothing to call.
namespace tenon::profile {

/// Whether a tool listens; asks it once.
bool startNvtx();
void pushNvtx(const char *name);
void popNvtx();

} // namespace tenon::profile
