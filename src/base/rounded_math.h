#pragma once
// Elementary functions of double as fixed sequences of IEEE additions, multiplications and divisions: the same bits
// with every compiler, C library and processor. libm's are not: glibc, for one, takes other bodies where there is FMA.
// For rotary tables, slopes, and what a model's configuration leaves to be derived; where 15 digits do and speed
// counts, sample/exact_log.h. Any thread.

namespace candor {

struct SinCos {
  double sin;
  double cos;
};

// At most 2^-52 off for |angle| < 2^45, NaN beyond it.
SinCos rounded_sincos(double angle);

// Correctly rounded but for one argument in 2^40. NaN where libm has NaN; log(0) is -inf; exp leaves at 0 and inf.
double rounded_log(double x);
double rounded_exp(double x);
// NaN unless base is positive and finite.
double rounded_pow(double base, double exponent);
// At most 1e-15 off.
double rounded_tanh(double x);
double rounded_erf(double x);

}  // namespace candor
