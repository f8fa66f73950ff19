"""What is known of programs: which have commands of their own, and which run whatever they are told to."""

import re
from collections.abc import Mapping

# What comes first after these is the name of what they do.
WITH_COMMANDS = frozenset(
    re.findall(
        r"\S+",
        """
        apt apt-get aws az brew bundle bun cargo cmake composer conda dart deno docker docker-compose dotnet flutter
        gcloud gem gh git glab go gradle gradlew hatch helm invoke just kubectl make mix mvn mvnw nix npm nx pdm pip
        pipenv pipx pnpm podman poetry pre-commit rake rustup swift systemctl task terraform tox turbo uv yarn zig
        """,
    )
)

# What comes next after these is the name of a script of the project.
SCRIPTS = frozenset({("bun", "run"), ("deno", "task"), ("npm", "run"), ("pnpm", "run"), ("yarn", "run")})

# After these comes a command as good as any other.
BEFORE_OTHERS = frozenset(
    {("bundle", "exec"), ("npx",), ("pdm", "run"), ("pipenv", "run"), ("poetry", "run"), ("uv", "run"), ("uvx",)}
)

# These run a file. Where there is an option, what comes after it says what is run as well; every other may be code.
INTERPRETERS: Mapping[str, str] = {
    "java": "-jar",
    "lua": "",
    "node": "",
    "perl": "",
    "php": "",
    "python": "-m",
    "Rscript": "",
    "ruby": "",
    "tsx": "",
}

# A lasting word on one of these would be a word on everything.
RUN_ANYTHING = frozenset(
    re.findall(
        r"\S+",
        """
        alias ash at awk bash batch builtin busybox chroot cmd command coproc crontab csh dash doas emacs env eval
        exec expect export fd fdfind fish flock gawk gdb ionice irb jshell ksh mawk nawk nice nohup nsenter osascript
        parallel powershell pwsh rlwrap rsh runuser screen script sed set setsid sh source ssh stdbuf strace su sudo
        taskset tclsh time timeout tmux trap unshare vi vim watch xargs zsh
        """,
    )
)
RUN_ANYTHING_AS = frozenset(
    {
        ("bun", "x"),
        ("conda", "run"),
        ("deno", "eval"),
        ("deno", "run"),
        ("docker", "compose"),
        ("docker", "exec"),
        ("docker", "run"),
        ("docker-compose", "exec"),
        ("docker-compose", "run"),
        ("git", "bisect"),
        ("git", "config"),
        ("git", "filter-branch"),
        ("git", "submodule"),
        ("go", "run"),
        ("hatch", "run"),
        ("kubectl", "exec"),
        ("mix", "eval"),
        ("mix", "run"),
        ("nix", "develop"),
        ("nix", "run"),
        ("nix", "shell"),
        ("npm", "exec"),
        ("npm", "x"),
        ("pipx", "run"),
        ("pnpm", "dlx"),
        ("pnpm", "exec"),
        ("podman", "exec"),
        ("podman", "run"),
        ("rustup", "run"),
        ("uv", "tool"),
        ("yarn", "dlx"),
        ("yarn", "exec"),
    }
)

# Programs that only look, and how an argument begins with which they run others, delete or write.
ACTS: Mapping[str, tuple[str, ...]] = {
    "find": ("-exec", "-ok", "-delete", "-fprint", "-fls"),
    "rg": ("--pre",),
}
# Of commands of git: how an argument begins with which they run a program that is named there, or write where it says.
GIT_ACTS: Mapping[str, tuple[str, ...]] = {
    "archive": ("--exec", "--output", "-o", "--remote"),
    "clone": ("-c", "--config", "-u", "--upload-pack", "--template"),
    "diff": ("--output", "--ext-diff"),
    "fetch": ("--upload-pack",),
    "grep": ("-O", "--open-files-in-pager"),
    "init": ("--template", "--separate-git-dir"),
    "log": ("--output", "--ext-diff"),
    "ls-remote": ("--upload-pack",),
    "pull": ("--upload-pack",),
    "push": ("--receive-pack", "--exec"),
    "rebase": ("-x", "--exec", "-i", "--interactive"),
    "show": ("--output", "--ext-diff"),
}

# These change nothing that they name, and so may name anything.
READERS = frozenset(
    re.findall(r"\S+", "cat cksum cmp diff du file find grep head less ls md5sum more rg sha256sum stat tail tree wc")
)
READING_GIT = frozenset(re.findall(r"\S+", "add blame commit diff log ls-files ls-tree show status"))

# The files that say what the words after a program mean: a lasting word on `make test` is one on what they say then.
DEFINED_IN: Mapping[str, tuple[str, ...]] = {
    "ant": ("build.xml",),
    "bun": ("package.json", "bunfig.toml"),
    "bundle": ("Gemfile",),
    "cargo": ("Cargo.toml", "build.rs"),
    "cmake": ("CMakeLists.txt", "CMakePresets.json"),
    "composer": ("composer.json",),
    "deno": ("deno.json", "deno.jsonc", "package.json"),
    "docker-compose": ("docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml"),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "gradlew": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "hatch": ("pyproject.toml", "hatch.toml"),
    "invoke": ("tasks.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "mix": ("mix.exs",),
    "mvn": ("pom.xml",),
    "mvnw": ("pom.xml",),
    "npm": ("package.json",),
    "nox": ("noxfile.py",),
    "nx": ("nx.json", "project.json", "package.json"),
    "pdm": ("pyproject.toml",),
    "pnpm": ("package.json",),
    "poetry": ("pyproject.toml",),
    "pre-commit": (".pre-commit-config.yaml",),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
    "task": ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml"),
    "tox": ("tox.ini", "pyproject.toml", "setup.cfg"),
    "turbo": ("turbo.json", "package.json"),
    "yarn": ("package.json",),
}

# These run code of the project, which the agent may have written.
RUN_PROJECT = (
    frozenset(DEFINED_IN)
    | frozenset(INTERPRETERS)
    | frozenset(
        re.findall(
            r"\S+",
            """
            ava bazel cabal ctest cypress dart dotnet eslint flutter go gulp jest lein meson mocha mypy ninja npx
            phpunit pipenv playwright pylint pytest py.test rspec sbt stack swift terraform uv vite vitest webpack zig
            """,
        )
    )
)
