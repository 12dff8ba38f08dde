# site.sh: the documentation as a site, in an environment of its own.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034  # the other files' variables

site_environment=build/site-environment
site_requirements=requirements/docs.txt

set_up_site() {
  local stamp
  stamp=$site_environment/stamp-$({ cat "$site_requirements"; python3 --version; } | sha256sum | cut -c1-12)
  [[ ! -f $stamp ]] || return 0
  [[ -z ${TUTTI_NO_INSTALL:-} ]] || { note "not installed: $site_requirements"; return 1; }
  python3 -m venv --clear "$site_environment"
  "$site_environment/bin/python" -m pip install --disable-pip-version-check --progress-bar off -r "$site_requirements"
  touch "$stamp"
}

site_targets=(tuttirun tutti_program)  # say what their options are

# The reference, written from the sources; a page whose program is not that of examples/ is an error.
write_reference() {
  python3 tools/docs_pages.py
  python3 tools/docs_reference.py docs/reference --build build/release
  python3 tools/docs_figures.py --build build/release
  python3 tools/docs_plots.py
}

# Strict: a page that is in no menu and a link or an anchor that leads nowhere are errors. Needs no network.
build_site() {
  NO_MKDOCS_2_WARNING=1 "$site_environment/bin/mkdocs" build --strict
  "$site_environment/bin/codespell" --skip '*.svg' --ignore-words-list coo docs README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md
  count_tests 2 0 0
}

verb_site() {
  stage "set up site" set_up_site || return 1
  stage "configure release" configure release || return 1
  stage "build ${site_targets[*]}" build_target release "${site_targets[@]}" || return 1
  stage "write reference" write_reference || return 1
  stage site build_site
}
