// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/verify/Values.h"


namespace tenon::zoo {

template <class T> void vectorAddReference(Arguments &arguments) {
  std::vector<T> x = valuesOf<T>(arguments[0].tensor()), y = valuesOf<T>(arguments[1].tensor());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] += y[i];
  setValues(arguments[2].tensor(), x);
}

} // namespace tenon::zoo
