#!/usr/bin/env python3
"""features.py - which functions of CUDA the host runtime runs, and which it refuses; from NVIDIA's headers.

  features.py list  CUDA_HOME LIBRARY        prints the list: KIND NAME runs|refused, one line each (tests/hostcuda/features.txt)
  features.py check CUDA_HOME LIBRARY FILE   fails if FILE is not that list, or docs/hostcuda.md has not its counts
  features.py table FILE                     prints the table of docs/hostcuda.md, from the list

A function of the API runs if the library defines it. A function of the device runs if a call with the arguments that the header declares
compiles with hostcuda.h in front and links. Everything else is refused: hcu_refused.cpp stops at the call of an API function with its name
and the line, and the compiler names a device function that hostcuda.h has not."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
API = {  # the header, and what begins a name of it
    "runtime": ("cuda_runtime_api.h", "cuda"),
    "driver": ("cuda.h", "cu"),
    "cublas": ("cublas_api.h", "cublas"),
    "cublasLt": ("cublasLt.h", "cublasLt"),
    "curand": ("curand.h", "curand"),
}
DEVICE = {
    "math": ["crt/math_functions.h"],
    "intrinsics": ["crt/device_functions.h", "crt/device_double_functions.h", "sm_30_intrinsics.h", "sm_32_intrinsics.h", "sm_61_intrinsics.h",
                   "crt/sm_70_rt.h", "crt/sm_80_rt.h", "crt/sm_90_rt.h", "crt/sm_100_rt.h", "sm_20_intrinsics.h"],
    "atomics": ["device_atomic_functions.h", "sm_20_atomic_functions.h", "sm_32_atomic_functions.h", "sm_60_atomic_functions.h"],
    "half": ["cuda_fp16.h"],
    "bfloat16": ["cuda_bf16.h"],
    "device-runtime": ["cuda_device_runtime_api.h"],  # in kernels; what a host may call, too, is of the runtime
    "textures": ["texture_indirect_functions.h", "surface_indirect_functions.h"],
}
NOT_CALLS = {"defined", "sizeof", "__attribute__", "__align__", "alignas", "__declspec", "asm", "if", "return", "while", "for", "__cudart_builtin__"}


OTHER_COMPILERS = ("_D", "_F", "_L", "_d", "_f", "_l", "_h", "__DOUBLE_BITS", "__FLOAT_BITS", "__isfinite", "__isinfd", "__isnand", "__signbitd")  # of MSVC, macOS


def text_of(path):
    text = open(path, encoding="utf-8", errors="replace").read()
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return text.replace("\\\n", " ").replace("__DEF_IF_HOST", ";")


def api_names(cuda, header, prefix):
    """Exported functions of a C header: NAME( behind a macro or type, with the prefix and a capital letter behind it."""
    path = os.path.join(cuda, "include", header)
    if not os.path.exists(path):
        return []
    text = re.sub(r"(?m)^\s*#.*$", "", text_of(path))
    names = set()
    for m in re.finditer(r"\b(%s[A-Z][A-Za-z0-9_]*)\s*\(" % prefix, text):
        before = text[:m.start()].rstrip()
        word = re.search(r"([A-Za-z_0-9*]+)$", before)
        if not word or word.group(1) in ("return", "else", "typedef") or before.endswith(("(", ",", "=", "{", "&")):
            continue
        behind = text[m.end():]
        close = end_of_bracket(behind)
        if re.match(r"\s*(CUDA_CB\s*)?(;|__attribute__|\{)?", behind[close:]).group(0).strip() == ";" and "typedef" not in before.rsplit(";", 1)[-1]:
            names.add(m.group(1))
    return sorted(names)


def end_of_bracket(text):
    depth = 1
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i + 1
    return len(text)


def declarations(path):
    """(name, [parameter types]) of each function that a header declares for the device."""
    text = re.sub(r"(?m)^\s*#.*$", "", text_of(path))
    found = {}
    pattern = r"(?:^|[;{}])([^;{}()]*?)\b([A-Za-z_]\w*)\s*\("
    for m in re.finditer(pattern, text, flags=re.S):
        head, name = m.group(1), m.group(2)
        if name in NOT_CALLS or name.startswith(("__nv_", "__NV", "__internal", "operator", "__cuda") + OTHER_COMPILERS) or not head.strip():
            continue
        if re.search(r"\b(typedef|return|define|namespace|using|struct|class|asm|template)\b|=|operator", head):
            continue
        if not re.search(r"__device__|_DECL__|__CUDA_FP16|__CUDA_BF16|__func__", head):
            continue
        behind = text[m.end():]
        arguments = behind[:end_of_bracket(behind) - 1]
        tail = behind[len(arguments) + 1:].lstrip()
        if not re.match(r"(;|\{|__THROW|noexcept|__asm__|throw|asm|__DEF_IF_HOST|NV_MATH)", tail):
            continue
        types = parameter_types(arguments)
        if types is not None:
            found.setdefault((name, len(types)), types)
    return found


def parameter_types(arguments):
    arguments = arguments.strip()
    if arguments in ("", "void"):
        return []
    types = []
    for a in arguments.split(","):
        a = re.sub(r"=.*", "", a).replace("__restrict__", " ").strip()
        a = re.sub(r"\b(enum|struct)\s+", "", a)
        if "(" in a or "..." in a or "[" in a:
            return None
        words = re.findall(r"\w+|\*|&", a)
        if not words:
            return None
        plain = {"const", "volatile", "unsigned", "signed", "int", "char", "short", "long", "float", "double", "void", "size_t", "bool"}
        last = words[-1]
        if len(words) > 1 and re.match(r"\w", last) and last not in plain and any(w not in ("const", "volatile") for w in words[:-1]):
            words = words[:-1]
        types.append(" ".join(words))
    return types


def device_functions(cuda):
    out = []
    of_host = set(api_names(cuda, *API["runtime"]))
    for kind, headers in DEVICE.items():
        seen = set()
        for header in headers:
            path = os.path.join(cuda, "include", header)
            if not os.path.exists(path):
                continue
            for (name, _), types in sorted(declarations(path).items()):
                if kind == "device-runtime" and (name in of_host or name.endswith("_ptsz")):
                    continue
                out.append((kind, name, types))
                seen.add(name)
        if kind == "atomics":  # templates of crt/sm_90_rt.h, for types of 16 bytes
            for scope in ("", "_block", "_system"):
                out.append((kind, "atomicCAS%s:128" % scope, ["ulonglong2 *", "ulonglong2", "ulonglong2"]))
                out.append((kind, "atomicExch%s:128" % scope, ["ulonglong2 *", "ulonglong2"]))
    return out


def defined(library):
    names = subprocess.run(["nm", "-g", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    members = re.split(r"(?m)^(\S+\.o):$", names)  # the names of the refusals do not count
    text = "".join(body for member, body in zip(members[1::2], members[2::2]) if member != "hcu_refused.o")
    return set(re.findall(r" [TW] (\w+)$", text, flags=re.M))


def device_verdicts(cuda, library, functions):
    """Which calls compile and link: all of them in one file, those that do not are taken out and the rest is tried again."""
    bad = set()
    compiler = os.environ.get("CXX", "g++")
    with tempfile.TemporaryDirectory() as work:
        source, obj = os.path.join(work, "calls.cpp"), os.path.join(work, "calls.o")
        for _ in range(6):
            with open(source, "w", encoding="utf-8") as f:
                f.write("#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
                        "template <class T> T &hcu_any() { static char x[64]; return *(T *)x; }\n")
                for i, (_, name, types) in enumerate(functions):
                    if i in bad:
                        continue
                    values = ", ".join("hcu_any<%s>()" % re.sub(r"\s*&", "", t) for t in types)
                    f.write('#line 1 "call-%d"\nvoid hcu_call_%d() { (void)%s(%s); }\n' % (i, i, name.split(":")[0], values))
            command = [compiler, "-std=gnu++17", "-w", "-O0", "-g", "-fmax-errors=0", "-isystem", cuda + "/include", "-I" + HERE, "-x", "c++", "-include",
                       "hostcuda.h", "-c", source, "-o", obj]
            done = subprocess.run(command, capture_output=True, text=True)
            found = set(int(n) for n in re.findall(r"call-(\d+):1:\d+: (?:error|  required from here)", done.stderr))
            if done.returncode == 0:
                break
            if not found - bad:
                sys.exit("features.py: the calls do not compile:\n" + done.stderr[:2000])
            bad |= found
        main = os.path.join(work, "main.cpp")
        with open(main, "w", encoding="utf-8") as f:
            f.write("int main() { return 0; }\n")
        done = subprocess.run([compiler, "-w", main, obj, library, "-lpthread", "-ldl", "-lm", "-o", os.path.join(work, "a")], capture_output=True,
                              text=True)
        for n in re.findall(r"call-(\d+):1: undefined reference to", done.stderr):
            bad.add(int(n))
    return bad


def templates():
    """Functions of the API that hostcuda.h has as templates, for kernels and variables of any type."""
    text = open(os.path.join(HERE, "hostcuda.h"), encoding="utf-8").read()
    return set(re.findall(r"inline cudaError_t (cuda\w+)\(", text))


def features(cuda, library):
    have = defined(library) | templates()
    lines = []
    for kind, (header, prefix) in API.items():
        for name in api_names(cuda, header, prefix):
            if kind == "cublas" and name.startswith("cublasLt"):
                continue
            lines.append((kind, name, "runs" if name in have or name + "_v2" in have else "refused"))
    functions = device_functions(cuda)
    bad = device_verdicts(cuda, library, functions)
    verdict = {}
    for i, (kind, name, _) in enumerate(functions):
        verdict[kind, name] = verdict.get((kind, name), True) and i not in bad
    for (kind, name), runs in sorted(verdict.items()):
        lines.append((kind, name, "runs" if runs else "refused"))
    return lines


def counts(lines):
    """The rows of the table: for each kind how many run, how many are refused."""
    table = {}
    for kind, _, verdict in lines:
        row = table.setdefault(kind, [0, 0])
        row[verdict == "refused"] += 1
    return ["| %s | %d | %d |" % (kind, row[0], row[1]) for kind, row in table.items()]


def check(cuda, library, path):
    now, kept = features(cuda, library), [tuple(line.split()) for line in open(path, encoding="utf-8")]
    failed = 0
    for line in sorted(set(now) ^ set(kept)):
        print("FAIL %s: %s" % ("not in features.txt" if line in now else "only in features.txt", " ".join(line)))
        failed += 1
    page = os.path.join(HERE, "..", "..", "docs", "hostcuda.md")
    text = open(page, encoding="utf-8").read() if os.path.exists(page) else ""
    for row in counts(kept):
        if text and row not in text:
            print("FAIL docs/hostcuda.md has not the row " + row)
            failed += 1
    print("features: %d passed, %d failed" % (len(now), failed))
    return failed != 0


def main():
    if sys.argv[1:2] == ["check"] and len(sys.argv) == 5:
        return check(*sys.argv[2:])
    if sys.argv[1:2] == ["table"] and len(sys.argv) == 3:
        print("\n".join(counts([tuple(line.split()) for line in open(sys.argv[2], encoding="utf-8")])))
        return 0
    if sys.argv[1:2] == ["list"] and len(sys.argv) == 4:
        for line in features(sys.argv[2], sys.argv[3]):
            print(*line)
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
