// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::nvidia {

/// Steps of code generation that a kernel is right without, and slower: each can be left out to see what it is worth.
struct Steps {
  bool warpgroups = true;   ///< dots by wgmma, with the roles and transfers that belong to it
  bool persistence = true;  ///< a block takes one program instance after the other
  bool order = true;        ///< instances in an order that walks a few rows of tiles together
  bool registers = true;    ///< registers move from the warps that load to those that multiply
  bool overlap = true;      ///< a dot is waited for when the next iteration's has been started
  bool operandsAhead = true; ///< what operands are computed from is loaded ahead, and they while dots are under way
  bool registerOperands = true; ///< operands that are computed for few rows are multiplied out of registers
  bool joinedDots = true;   ///< dots of the same rows are one instruction
  bool endOfK = true;       ///< what lies behind the end of both matrices is not multiplied
  bool liveRows = true;     ///< warpgroups whose rows nobody needs multiply nothing
  bool bulkStores = true;   ///< stores by the tensor memory accelerator
  bool slices = true;       ///< large tiles are stored in slices that take turns in little shared memory
  bool lateLoads = true;    ///< large tiles behind a loop of dots come by the tensor memory accelerator, in pieces
  bool earlyLoads = true;   ///< loads behind a loop of dots are made before it
  bool groupExchange = true; ///< small tiles change layout within each warpgroup
  bool sinking = true;      ///< values are computed where they are used
  bool firstLoads = true;   ///< what a block loads first is asked for while the kernel before still runs
  bool streams = true;      ///< the L2 cache drops first what is read once

  /// All of them but the ones named, separated by commas. Throws Error for a name that is none of names().
  static Steps without(std::string_view list);
  static const std::vector<std::string> &names();
};

} // namespace tenon::nvidia
