// The switches that turn mutants on. A file with mutants includes this header.
//
// FUSEBOX_MUTANT gives the number of the active mutant, from 1; if it is unset, none is active. FUSEBOX_MUTANT_NOTES
// names a file of two bytes that this process and its children share. The first byte becomes 1 when the mutated place
// is evaluated, the second when its value is known to differ from the original's.
//
//   if (fusebox_mutant::binary<fusebox_mutant::Less, fusebox_mutant::LessEqual, 17>(a, b))   // a < b, or a <= b
//   { if (!fusebox_mutant::on<18>()) count += 1; }                                             // or nothing
#pragma once

#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>

namespace fusebox_mutant {

inline int number_from_environment() {
  const char* text = std::getenv("FUSEBOX_MUTANT");
  return text != nullptr ? std::atoi(text) : 0;
}

inline volatile unsigned char* notes_from_environment() {
  static volatile unsigned char nowhere[2];
  const char* path = std::getenv("FUSEBOX_MUTANT_NOTES");
  const int file = path != nullptr ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return nowhere;
  void* page = ::mmap(nullptr, 2, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return page != MAP_FAILED ? static_cast<volatile unsigned char*>(page) : nowhere;
}

// Initialized before the namespace-scope variables of a file that includes this header.
inline const int current = number_from_environment();
inline volatile unsigned char* const notes = notes_from_environment();

[[gnu::noinline, gnu::cold]] inline void note(int which) { notes[which] = 1; }

// True if the mutated place is evaluated with the mutant on. In a constexpr function (`kConstexpr`), compile-time
// evaluation is never mutated; elsewhere no mutated expression is a constant.
template <int kNumber, bool kConstexpr = false>
constexpr bool is_reached() {
  if constexpr (kConstexpr)
    if (std::is_constant_evaluated()) return false;
  if (kNumber != current) [[likely]]
    return false;
  note(0);
  return true;
}

// The same for a place where evaluation alone shows the change.
template <int kNumber, bool kConstexpr = false>
constexpr bool on() {
  if (!is_reached<kNumber, kConstexpr>()) return false;
  note(1);
  return true;
}

template <class A, class B>
bool is_other(const A& a, const B& b) {
  if (a == b || (a != a && b != b)) return false;
  note(1);
  return true;
}

#define FUSEBOX_MUTANT_OPERATOR(name, op)                   \
  struct name {                                             \
    template <class A, class B>                             \
    constexpr auto operator()(const A& a, const B& b) const \
      requires requires { a op b; }                         \
    {                                                       \
      return a op b;                                        \
    }                                                       \
  };
FUSEBOX_MUTANT_OPERATOR(Less, <)
FUSEBOX_MUTANT_OPERATOR(LessEqual, <=)
FUSEBOX_MUTANT_OPERATOR(Greater, >)
FUSEBOX_MUTANT_OPERATOR(GreaterEqual, >=)
FUSEBOX_MUTANT_OPERATOR(Equal, ==)
FUSEBOX_MUTANT_OPERATOR(NotEqual, !=)
FUSEBOX_MUTANT_OPERATOR(Add, +)
FUSEBOX_MUTANT_OPERATOR(Subtract, -)
FUSEBOX_MUTANT_OPERATOR(Multiply, *)
FUSEBOX_MUTANT_OPERATOR(Divide, /)
FUSEBOX_MUTANT_OPERATOR(Remainder, %)
FUSEBOX_MUTANT_OPERATOR(And, &)
FUSEBOX_MUTANT_OPERATOR(Or, |)
FUSEBOX_MUTANT_OPERATOR(ShiftLeft, <<)
FUSEBOX_MUTANT_OPERATOR(ShiftRight, >>)
#undef FUSEBOX_MUTANT_OPERATOR

// Another operator's value, plus kBy.
template <class Operator, int kBy>
struct OffBy {
  constexpr auto operator()(const auto& a, const auto& b) const
    requires requires { Operator{}(a, b) + 1; }
  {
    return Operator{}(a, b) + kBy;
  }
};

// __int128 too, which strict mode does not count as arithmetic.
template <class T>
inline constexpr bool is_number =
    std::is_arithmetic_v<T> || std::is_same_v<T, __int128> || std::is_same_v<T, unsigned __int128>;

template <class T>
inline constexpr bool is_plain = is_number<T> || std::is_enum_v<T> || std::is_pointer_v<T> || std::is_null_pointer_v<T>;

// The value of `Changed` for operands with built-in operators; other types keep the original.
template <class Original, class Changed, int kNumber, bool kConstexpr = false, class A, class B>
constexpr auto binary(const A& a, const B& b) {
  const auto original = Original{}(a, b);
  using Result = std::remove_const_t<decltype(original)>;
  if constexpr (is_plain<A> && is_plain<B>) {
    if (!is_reached<kNumber, kConstexpr>()) [[likely]]
      return original;
    const auto changed = static_cast<Result>(Changed{}(a, b));
    is_other(original, changed);
    return changed;
  } else {
    return original;
  }
}

// `to += by` and the like; `Original` and `Changed` are the operators without assignment.
template <class Original, class Changed, int kNumber, bool kConstexpr = false, class A, class B>
constexpr A& compound(A& to, const B& by) {
  to = static_cast<A>(binary<Original, Changed, kNumber, kConstexpr>(to, by));
  return to;
}

// !condition if the mutant is on.
template <int kNumber, bool kConstexpr = false>
constexpr bool negated(const auto& condition) {
  return on<kNumber, kConstexpr>() != static_cast<bool>(condition);
}

// A value's replacement of the same type: a literal, or one side of && or ||.
template <int kNumber, bool kConstexpr = false, class T, class U>
constexpr U replaced(const T& original, U changed) {
  const U value = static_cast<U>(original);
  if (!is_reached<kNumber, kConstexpr>()) [[likely]]
    return value;
  is_other(value, changed);
  return changed;
}

// The operand of a minus sign that is left out.
template <int kNumber, bool kConstexpr = false, class T>
constexpr T plus(const T& negative) {
  if constexpr (is_number<T>) {
    if (!is_reached<kNumber, kConstexpr>()) [[likely]]
      return negative;
    is_other(negative, static_cast<T>(-negative));
    return static_cast<T>(-negative);
  } else {
    return negative;
  }
}

}  // namespace fusebox_mutant
