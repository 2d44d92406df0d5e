"""The wheel of `pip install .`: the package that `make python` makes, with its compiled library. CC and CFLAGS are make's."""
import os
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

WORK = os.path.join(os.environ.get("BUILD", "build"), "pip")


def version():
    with open("amp.h", encoding="utf-8") as header:
        return ".".join(re.findall(r"^#define AMP_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)", header.read(), re.M))


class Made(build_py):
    def run(self):
        if getattr(self, "editable_mode", False):
            sys.exit("amp: an editable install has no place for the compiled library: make python, and PYTHONPATH=build/python")
        super().run()
        subprocess.run(["make", "-s", "python", "NVCC=", f"BUILD={WORK}", f"PYTHON={sys.executable}"], check=True)
        shutil.copytree(os.path.join(WORK, "python", "amp"), os.path.join(self.build_lib, "amp"), dirs_exist_ok=True)


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    def get_tag(self):  # any Python 3: the library is opened by ctypes
        return "py3", "none", super().get_tag()[2]


os.makedirs(WORK, exist_ok=True)
setup(
    version=version(),
    distclass=Binary,
    cmdclass={"build_py": Made, "bdist_wheel": Wheel},
    options={"build": {"build_base": WORK}, "egg_info": {"egg_base": WORK}},
)
