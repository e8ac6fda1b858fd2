// Names the build that a library or a module belongs to. They share values of C++ types, so they fit together only if they
// were compiled with the same headers.
//
// The build writes the function's text: the version, and a digest of the headers that aten_api.h and cuda_api.h lead
// to. Each module exports a copy of it. The loader (module_loader.h) compares that with its own.
//
//   fusebox_module_identity()   // `0.1.0-5a99f776ab393653`
#pragma once

extern "C" const char* fusebox_module_identity();
