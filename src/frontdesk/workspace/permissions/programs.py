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
        alias ash at awk bash batch builtin busybox chroot cmd command coproc crontab csh dash doas ed emacs entr env
        eval ex exec expect export fd fdfind fish flock gawk gdb ionice irb jshell ksh less lldb man mawk more nawk nice
        nohup nsenter nvim osascript parallel powershell pwsh rlwrap rsh rsync runuser scp screen script sed set setsid
        sftp sh socat source sqlite3 ssh stdbuf strace su sudo tar taskset tclsh time timeout tmux trap unshare vi view
        vim vimdiff watch watchexec xargs zip zsh
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

# How an argument begins with which a program that else is plain runs others, deletes or writes, or takes what it runs
# from somewhere else.
ACTS: Mapping[str, tuple[str, ...]] = {
    "cargo": ("--manifest-path", "--config"),
    "file": ("-C", "--compile"),
    "find": ("-exec", "-ok", "-delete", "-fprint", "-fls"),
    "just": ("-f", "--justfile", "-d", "--working-directory", "--shell"),
    "make": ("-f", "--file", "--makefile", "-C", "--directory", "--eval", "SHELL="),
    "npm": ("--prefix", "--script-shell", "-C"),
    "pnpm": ("--prefix", "--script-shell", "--dir", "-C"),
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("--compress-program",),
    "tox": ("-c", "--conf"),
    "tree": ("-o",),
    "yarn": ("--cwd",),
}
# The same of git: of all its commands, and of some.
GIT_ACTS = ("--output", "--ext-diff", "--exec", "--upload-pack", "--receive-pack", "--open-files-in-pager")
GIT_ACTS_OF: Mapping[str, tuple[str, ...]] = {
    "archive": ("-o", "--remote"),
    "clone": ("-c", "--config", "-u", "--template"),
    "difftool": ("-x", "--extcmd"),
    "format-patch": ("-o",),
    "grep": ("-O",),
    "init": ("--template", "--separate-git-dir"),
    "rebase": ("-x", "-i", "--interactive"),
}

# These change nothing that they name, and so may name anything.
READERS = frozenset(
    re.findall(r"\S+", "cat cd cksum cmp diff du file find grep head ls md5sum rg sha256sum stat tail tree wc")
)
READING_GIT = frozenset(re.findall(r"\S+", "add blame commit diff log ls-files ls-tree show status"))

# The files that say what the words after a program mean: a lasting word on `make test` is one on what they say then.
DEFINED_IN: Mapping[str, tuple[str, ...]] = {
    "ant": ("build.xml",),
    "bun": ("package.json", "bunfig.toml"),
    "bundle": ("Gemfile",),
    "cargo": ("Cargo.toml", "build.rs", "rust-toolchain", "rust-toolchain.toml"),
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
    "pip": ("pyproject.toml", "setup.py", "setup.cfg"),
    "pipx": ("pyproject.toml", "setup.py", "setup.cfg"),
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
            ava bazel cabal conda ctest cypress dart docker dotnet eslint flutter gem go gulp jest lein meson mocha
            mypy ninja nix npx phpunit pipenv playwright podman pylint pytest py.test rspec sbt stack swift terraform uv
            vite vitest webpack zig
            """,
        )
    )
)
