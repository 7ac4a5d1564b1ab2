"""Configuration that test runners, interpreters, build tools and package managers read by its name."""

from __future__ import annotations

import re

_RUNNER_NAME = re.compile(
    r"jest[-.].*|.*[.]jest[.].*|jest|vitest[-.].*|karma[-.].*|mocha\.opts|mocharc.*|jasmine.*\.(?:json|js|mjs)|nyc\.config.*"
    r"|setup-?tests?\..*|setup-?(?:jest|vitest|mocha)\..*|(?:jest|vitest|mocha)[-_.]?setup\..*"
    r"|cypress\.(?:config.*|json|env\.json)|playwright\.config.*|protractor.*|wdio\..*|nightwatch.*|codecept.*|testcafe.*"
    r"|ava\.config.*|web-test-runner.*|wallaby\..*|stryker.*|cucumber\..*"
    r"|conftest\.py|pytest\.ini|tox\.ini|noxfile\.py|setup\.cfg|pyproject\.toml|sitecustomize\.py|usercustomize\.py"
    r"|nose\.cfg|unittest\.cfg|pyvenv\.cfg|phpunit.*|codeception.*|behat\..*|pest\.php"
    r"|rakefile(?:\.rb)?|guardfile|test\.rb"
    r"|junit-platform\.properties|testng.*\.xml|surefire.*|xunit\.runner\.json|.*\.runsettings"
)
_BUILD_NAME = re.compile(
    r"babel[.-].*|webpack[.-].*|vite\.config.*|rollup\.config.*|esbuild.*\.(?:js|mjs|cjs|ts)|rspack\..*"
    r"|tsconfig.*|jsconfig.*|angular\.json|angular-cli\.json|vue\.config.*|nuxt\.config.*|next\.config.*|svelte\.config.*"
    r"|craco\.config.*|config-overrides\.js|postcss\.config.*|tailwind\.config.*|metro\.config.*|nx\.json|turbo\.json"
    r"|lerna\.json|nest-cli\.json|ng-package\.json|gulpfile.*|gruntfile.*|eslint\.config.*"
    r"|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-.*\.yaml|bun\.lockb?|deno\.jsonc?|deno\.lock"
    r"|pom\.xml|build\.gradle.*|settings\.gradle.*|gradle\.properties|gradlew.*|mvnw.*|build\.sbt|lombok\.config"
    r"|.*\.(?:csproj|fsproj|vbproj|sln|slnx|props|targets)|global\.json|nuget\.config|packages\.lock\.json"
    r"|setup\.py|manifest\.in|pipfile(?:\.lock)?|poetry\.lock|uv\.lock|gemfile(?:\.lock)?|gems\.(?:rb|locked)|.*\.gemspec"
    r"|composer\.(?:json|lock)|go\.(?:mod|sum|work)|cargo\.(?:toml|lock)|mix\.(?:exs|lock)|makefile|cmakelists\.txt|justfile"
)
_CONFIG_LIKE = re.compile(r".*\.(?:config|conf|rc)\.(?:[cm]?[jt]s|json|ya?ml)|.*rc\.(?:json|ya?ml|toml)")
_APPLICATION_CONFIG = re.compile(
    r"(?:app|application|db|database|auth|jwt|passport|server|env|site|api|swagger|multer|mail|mailer|logger|log|cors|redis"
    r"|mongo|mongoose|sequelize|knex|socket|session|security|cloudinary|s3|aws|firebase|routes?)\.(?:config|conf)\..*"
)


def configuration(path: str) -> str | None:
    """`runner_configuration` or `build_configuration` for files that a tool reads by their name."""
    folders, _, name = path.lower().rpartition("/")
    if _RUNNER_NAME.fullmatch(name) and not (
        name == "test.rb" and not folders.endswith("config/environments")
    ):
        return "runner_configuration"
    if _BUILD_NAME.fullmatch(name):
        return "build_configuration"
    return None


def is_unknown_tool_configuration(path: str) -> bool:
    """Whether a new file beside package.json looks like the configuration of some tool."""
    name = path.lower().rpartition("/")[2]
    return _CONFIG_LIKE.fullmatch(name) is not None and _APPLICATION_CONFIG.fullmatch(name) is None
