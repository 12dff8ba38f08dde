// main.cpp: a program that knows Tutti only from its installed headers and library.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  tutti::Group world = tutti::init();  // alone
  std::vector<float> values(12, 1.0f);
  world.all_reduce(values);
  const tutti::View view(values);
  const std::string name(tutti::name_of(view.dtype()));
  bool caught = false;
  try {
    (void)tutti::dtype_from_name("float31");
  } catch (const tutti::InvalidArgument&) {  // exceptions keep their type across the library's border
    caught = true;
  }
  std::printf("%lld × %s, %s\n", static_cast<long long>(view.count()), name.c_str(),
              tutti::name_of(tutti::Op::sum).c_str());
  return view.count() == 12 && name == "float32" && caught && values[11] == static_cast<float>(world.size()) ? 0 : 1;
}
