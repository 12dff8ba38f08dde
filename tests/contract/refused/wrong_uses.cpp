// wrong_uses.cpp: what people type at first and must not compile. Each line ends with what the compiler's one error must say.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/tutti.hpp>

using namespace std::chrono_literals;

struct Point {
  double x, y;
};
struct Named {
  std::string name;
};
struct Shape {
  virtual ~Shape() = default;
};
struct Row {
  float values[300];
};

// One line for each use.
// clang-format off
void arrays(tutti::Group& world, int argc, char** argv) {
  std::vector<float> x(4), y(4);
  float one = 1;
  world.all_reduce(x);     // this compiles
  world.all_reduce(&one);  // error: a pointer does not say how many elements there are: pass std::span
  world.all_reduce(std::make_unique<float[]>(4));  // error: a smart pointer does not say how many
  std::vector<bool> flags(4);
  world.all_reduce(flags);  // error: std::vector<bool> has no elements in memory: use std::vector<char>
  std::vector<std::string> words(4);
  world.broadcast(words);  // error: the elements are strings, whose text lies elsewhere: join them
  std::vector<std::string_view> views(4);
  world.broadcast(views);  // error: the elements are pointers or views, which mean nothing in another process
  std::vector<int*> pointers(4);
  world.broadcast(pointers);  // error: the elements are pointers or views, which mean nothing in another process
  std::vector<std::vector<float>> rows(4);
  world.all_reduce(rows);  // error: the elements are containers, whose memory is not in one piece
  std::vector<Named> named(4);
  world.broadcast(named);  // error: the elements are not trivially copyable
  std::vector<Shape> shapes(4);
  world.broadcast(shapes);  // error: the elements have virtual functions
  std::list<float> list(4);
  world.all_reduce(list);  // error: the elements do not lie in one piece of memory: copy them to a std::vector
  std::map<int, float> map;
  world.broadcast(map);  // error: the elements do not lie in one piece of memory: copy them to a std::vector
  void* nothing = nullptr;
  (void)tutti::view(nothing, {4});  // error: void\* does not say what the elements are
  std::string text = "abc";
  world.all_reduce(text);  // error: text is moved, not reduced
  (void)world.start(tutti::AllReduce{.data = std::vector<double>(4)});  // error: the array is a temporary
  (void)world.start(tutti::AllReduce{.data = x, .out = std::vector<int>(4)});  // error: the array is a temporary
  (void)tutti::init(argc, argv);  // error: init\(\) does not need argc and argv
}

void options(tutti::Group& world) {
  std::vector<float> x(4), y(4);
  world.all_reduce(x, tutti::Op::max);  // error: the reduction is an option: write \{.op = tutti::Op::max\}
  world.all_reduce(x, 30s);  // error: the timeout is an option: write \{.timeout = 30s\}
  world.broadcast(x, 0);  // error: the root is an option: write \{.root = 0\}
  world.reduce(x, 1u);  // error: a root as \{.root = 0\}
  auto all = world.all_gather(x, {.root = 99});  // error: no matching
  world.scatter(x, y, {.op = tutti::Op::sum});  // error: cannot convert|no matching|does not refer to any field
  world.reduce(x, {.op = 1, .root = tutti::Op::sum});  // error: no matching|designator|could not convert
  tutti::Work work = world.start(tutti::AllReduce{.data = x});
  tutti::Work copy = work;  // error: deleted
}

void reductions(tutti::Group& world) {
  std::vector<float> x(4);
  std::vector<Point> points(4);
  std::vector<Row> rows(4);
  world.all_reduce(points);  // error: the elements are structs: say how two of them are combined
  (void)world.all_reduce(Point{});  // error: a struct is reduced by a function of your own
  world.all_reduce(points, {.op = tutti::Op::sum});  // error: the built-in reductions are for numbers: for structs write
  world.all_reduce(x, {.op = [](float a, float b) { return a + b; }});  // error: a function of your own is given as \{.op = tutti::op\(function\)\}
  world.all_reduce( x, {.op = tutti::op([](auto a, auto b) { return a + b; })});  // error: say what the function reduces: two parameters
  world.all_reduce( x, {.op = tutti::op([](float a, float b) { return 1.0 * a + b; })});  // error: the function returns what it takes
  world.all_reduce(points, {.op = tutti::op([](int a) { return a; })});  // error: the function takes two elements of the array
  double table[100] = {};
  world.all_reduce(x, {.op = tutti::op([table](float a, float b) { return a + b + float(table[0]); })});  // error: the function captures 24 bytes at most
  world.all_reduce( rows, {.op = tutti::op([](Row a, Row) { return a; })});  // error: at most 128 bytes, or of a multiple of 8 up to 896
}
// clang-format on
