"""Conan 2 recipe of amp: headers only. `conan create packaging/conan` in a checkout, or with conan-center's conandata.yml."""
import os
import re

from conan import ConanFile
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout

required_conan_version = ">=2.0"


class AmpConan(ConanFile):
    name = "amp"
    description = "Mixed-precision training for C and CUDA in two headers"
    license = "MIT"
    topics = ("machine-learning", "mixed-precision", "fp16", "bf16", "cuda", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, os.pardir, os.pardir)

    def set_version(self):
        text = load(self, os.path.join(self._root, "amp.h"))
        parts = [re.search(rf"#define AMP_VERSION_{p} +(\d+)", text).group(1) for p in ("MAJOR", "MINOR", "PATCH")]
        self.version = self.version or ".".join(parts)

    def export_sources(self):
        for name in ("amp.h", "amp_cuda.cuh", "LICENSE"):
            copy(self, name, self._root, self.export_sources_folder)

    def layout(self):
        basic_layout(self, src_folder=".")

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        for name in ("amp.h", "amp_cuda.cuh"):
            copy(self, name, self.source_folder, os.path.join(self.package_folder, "include"))

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "amp")
        self.cpp_info.set_property("cmake_target_name", "amp::amp")
        self.cpp_info.set_property("pkg_config_name", "amp")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["m", "pthread"]
