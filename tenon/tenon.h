// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything a user of Tenon needs: write a kernel (lang), hold data (runtime), run it (jit), prove it (verify).
#include "tenon/jit/Jit.h"
#include "tenon/lang/Kernel.h"
#include "tenon/runtime/Tensor.h"
#include "tenon/verify/Verify.h"
