"""usage: zig_wasi.py PROGRAM ARGUMENT...    runs a program for WASI, which sees this folder and nothing else, by wasmtime (PyPI)."""
import sys

import wasmtime

program, *rest = sys.argv[1:]
engine = wasmtime.Engine()
store = wasmtime.Store(engine)
wasi = wasmtime.WasiConfig()
wasi.argv = [program, *rest]
wasi.env = [("TMPDIR", ".")]
wasi.inherit_stdout()
wasi.inherit_stderr()
wasi.preopen_dir(".", ".")
store.set_wasi(wasi)
linker = wasmtime.Linker(engine)
linker.define_wasi()
instance = linker.instantiate(store, wasmtime.Module.from_file(engine, program))
try:
    instance.exports(store)["_start"](store)
except wasmtime.ExitTrap as end:
    sys.exit(end.code)
