# conanfile.py: Conan's recipe: `conan create packaging/conan --build=missing`, in a checkout.
# SPDX-License-Identifier: Apache-2.0
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Tutti(ConanFile):
    name = "tutti"
    license = "Apache-2.0"
    description = "Process groups, collectives and parallel-training building blocks for distributed arrays"
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        self.version = re.search(r"project\(tutti VERSION ([0-9.]+)", load(self, os.path.join(self._checkout(), "CMakeLists.txt")))[1]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"):
            copy(self, pattern, self._checkout(), self.export_sources_folder)

    def requirements(self):
        self.requires("fmt/10.2.1")
        self.requires("highway/1.2.0")
        self.requires("hwloc/2.11.1")
        self.requires("openssl/[>=3 <4]")
        self.requires("nlohmann_json/3.11.3")
        self.requires("cli11/2.4.2")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["TUTTI_TESTS"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # the package brings tuttiConfig.cmake
        self.cpp_info.builddirs = ["lib/cmake/tutti"]
