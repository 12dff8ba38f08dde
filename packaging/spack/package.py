# package.py: Spack's recipe: put this folder as packages/tutti into a repository of yours, then `spack install tutti@develop`.
# SPDX-License-Identifier: Apache-2.0
from spack.package import *


class Tutti(CMakePackage):
    """Process groups, collectives and parallel-training building blocks for distributed arrays."""

    license("Apache-2.0")
    version("develop")  # spack dev-build tutti@develop, in a checkout

    variant("shared", default=True, description="libtutti as a shared library")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("fmt@9:")
    depends_on("highway")
    depends_on("hwloc")
    depends_on("openssl@3:")
    depends_on("nlohmann-json", type="build")
    depends_on("cli11", type="build")

    def cmake_args(self):
        return [self.define_from_variant("BUILD_SHARED_LIBS", "shared"), self.define("TUTTI_TESTS", False)]
