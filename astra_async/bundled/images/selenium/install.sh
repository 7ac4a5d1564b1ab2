#!/bin/bash
# Runs as root in /projects, where the files of this set lie, with the network on.
set -euo pipefail

python3 -m venv /opt/venv
/opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps -r requirements.txt
/opt/venv/bin/pip check --disable-pip-version-check
# Nothing is installed later: a run has no network. Selenium's managers of drivers would fetch one.
/opt/venv/bin/pip uninstall -y --quiet pip setuptools
rm -rf /opt/venv/lib/python3*/site-packages/selenium/webdriver/common/{linux,linux-*,macos,windows}

rm -rf Dockerfile install.sh requirements.txt browser
