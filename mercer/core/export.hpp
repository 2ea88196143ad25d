// What the shared library shows. The whole of mercer is compiled with hidden visibility; what
// stands between MERCER_API_BEGIN and MERCER_API_END, in the headers that mercer/mercer.hpp
// reaches, is the public interface and the only C++ that libmercer.so exports. The same objects go
// into libmercer.a.
//
// MERCER_HIDDEN takes a class or function out of such a region again.
//
// In a program that uses mercer all three are empty: it may be compiled with any visibility of its
// own.
#pragma once

#ifdef MERCER_BUILDING
#define MERCER_API_BEGIN _Pragma("GCC visibility push(default)")
#define MERCER_API_END _Pragma("GCC visibility pop")
#define MERCER_HIDDEN __attribute__((visibility("hidden")))
#else
#define MERCER_API_BEGIN
#define MERCER_API_END
#define MERCER_HIDDEN
#endif
