"""Lists the names of files that programs run or obey by themselves, so that a write to one plants code or orders.

The list is as short as it can be: a person who is asked all the time stops reading. A file is on it if something acts
on it that nobody asked to run just then: git, a shell, an editor, a package manager, a CI server, another agent, or
Frontdesk. Files that act only in a command are not on it (`Makefile`, `package.json`, `conftest.py`): the person
allows the command, and is asked again where a file that defines it has changed (`guard.py`). `AGENTS.md` and similar
files are on it: other agents obey them, with rights of their own. `.gitignore`, `.editorconfig` and `.env` are not:
they run nothing, and are edited often.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise

GIT = "git acts on what is in it"
SHELL = "a shell or another program runs it when it starts"
EDITOR = "an editor runs or obeys what is in it"
CI = "a build server runs what is in it"
HOOKS = "git hooks run what is in it"
PACKAGES = "a package manager obeys what is in it"
AGENTS = "other agents obey what is in it"
VERSIONS = "a version control program acts on what is in it"
PYTHON = "Python runs it whenever it starts"
PROGRAMS = "a shell finds programs there by their names, and editors run some by themselves"
SECRETS = "it says who may log in, and how"
OURS = "it is Frontdesk's own"
REPOSITORY = "git takes a folder with it for a repository, and acts on what is in there"
LINKED = "the file has a second name elsewhere, which would change with it"
TOO_MANY = "there is too much in the folder to look through"


def _table(*lines: tuple[str, str]) -> Mapping[str, str]:
    return {name: why for why, names in lines for name in names.split()}


# Everything below one of these, at any depth.
PROTECTED_NAMES = _table(
    (GIT, ".git .gitattributes .gitmodules .gitconfig"),
    (VERSIONS, ".hg .hgrc .svn .bzr .jj .sl"),
    (
        HOOKS,
        ".husky .huskyrc .githooks .git-hooks .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml",
    ),
    (HOOKS, "lefthook.yml lefthook.yaml .lefthook.yml .lefthook .overcommit.yml .lintstagedrc .lintstagedrc.json"),
    (HOOKS, ".lintstagedrc.yaml .lintstagedrc.yml .lintstagedrc.js .lintstagedrc.mjs .lintstagedrc.cjs"),
    (SHELL, ".envrc .direnv .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv"),
    (
        SHELL,
        ".zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .xprofile .xinitrc .xsession .xsessionrc .inputrc",
    ),
    (SHELL, ".tmux.conf .screenrc .gdbinit .lldbinit .pdbrc .pythonrc .irbrc .rprofile .ipython .jupyter .curlrc"),
    (SHELL, ".wgetrc .crontab .tool-versions .asdfrc mise.toml .mise.toml .mise mise.local.toml .mise.local.toml"),
    (SECRETS, ".ssh .netrc .gnupg"),
    (EDITOR, ".vscode .idea .fleet .zed .vim .vimrc .gvimrc .exrc .nvim .nvimrc .nvim.lua .dir-locals.el"),
    (EDITOR, ".dir-locals-2.el .emacs .emacs.d .devcontainer .devcontainer.json .gitpod.yml .vs .nova .sublime"),
    (EDITOR, ".helix .kakrc .idx .replit"),
    (CI, ".github .gitlab .gitlab-ci.yml .gitlab-ci.yaml .circleci .travis.yml .drone.yml .woodpecker .woodpecker.yml"),
    (CI, ".woodpecker.yaml .buildkite .gitea .forgejo .azure-pipelines azure-pipelines.yml azure-pipelines.yaml"),
    (CI, "jenkinsfile bitbucket-pipelines.yml appveyor.yml .appveyor.yml .cirrus.yml .teamcity .semaphore .builds"),
    (CI, ".build.yml buildspec.yml buildspec.yaml cloudbuild.yaml cloudbuild.yml .readthedocs.yaml .readthedocs.yml"),
    (CI, "codefresh.yml .codefresh .tekton netlify.toml vercel.json wercker.yml"),
    (PACKAGES, ".npmrc .yarnrc .yarnrc.yml .yarn .pnpmrc .pnpmfile.cjs pnpmfile.cjs bunfig.toml .cargo .gemrc .bundle"),
    (PACKAGES, ".mvn .pip pip.conf pip.ini .pypirc .condarc .netlify nuget.config .terraformrc .m2 .pnp.cjs"),
    (PACKAGES, ".pnp.loader.mjs"),
    (AGENTS, ".claude .claude.json claude.md claude.local.md agents.md agents.override.md gemini.md .gemini .codex"),
    (AGENTS, ".cursor .cursorrules .cursorignore .windsurf .windsurfrules .clinerules .cline .roo .roorules .roomodes"),
    (AGENTS, ".continue .aider.conf.yml .amazonq .augment .junie .kiro .goose .goosehints .opencode opencode.json"),
    (AGENTS, "opencode.jsonc .agents .mcp.json .factory .qwen .trae .crush.json crush.json .kilocode .openhands"),
    (AGENTS, "warp.md"),
    (PYTHON, "sitecustomize.py usercustomize.py"),
    (OURS, "frontdesk.toml toolingmanifest.json"),
)
# Two names, one directly below the other.
PROTECTED_PAIRS: Mapping[tuple[str, str], str] = {
    (".config", "fish"): SHELL,
    (".config", "git"): GIT,
    (".config", "mise"): SHELL,
    (".config", "autostart"): SHELL,
    (".config", "systemd"): SHELL,
    (".config", "environment.d"): SHELL,
    (".config", "nvim"): EDITOR,
    (".config", "zed"): EDITOR,
    (".config", "code"): EDITOR,
    (".config", "pip"): PACKAGES,
    (".config", "bash"): SHELL,
    (".config", "zsh"): SHELL,
    (".config", "nushell"): SHELL,
    (".config", "helix"): EDITOR,
    (".aws", "config"): SECRETS,
    (".docker", "config.json"): SECRETS,
    (".kube", "config"): SECRETS,
    (".gradle", "init.d"): PACKAGES,
    (".local", "bin"): PROGRAMS,
    (".venv", "bin"): PROGRAMS,
    (".venv", "scripts"): PROGRAMS,
    ("venv", "bin"): PROGRAMS,
    ("venv", "scripts"): PROGRAMS,
    ("node_modules", ".bin"): PROGRAMS,
    ("library", "launchagents"): SHELL,
    ("gradle", "wrapper"): PACKAGES,
}
# Beginnings of names; with different suffixes there are several such files.
PROTECTED_BEGINNINGS: Mapping[str, str] = {
    ".bashrc": SHELL,
    ".zshrc": SHELL,
    ".profile.": SHELL,
    ".gitlab-ci": CI,
    ".drone.": CI,
    "azure-pipelines": CI,
    "jenkinsfile.": CI,
}
PROTECTED_ENDINGS: Mapping[str, str] = {
    ".code-workspace": EDITOR,
    ".sublime-project": EDITOR,
    ".pth": PYTHON,
}
# Only as a file; a folder with this name is an ordinary folder.
HEAD_FILE = "head"
# The short name of `.git` on Windows.
SHORT_GIT = re.compile(r"git~\d+")


def why_protected(names: Sequence[str], above: str = "") -> str:
    """Why a file is protected by its names, from the workspace's folder down; empty where it is not.

    `above` is the name of the workspace's folder.
    """
    plain = [_normalize_name(name) for name in names]
    found = next((why for name in plain if (why := PROTECTED_NAMES.get(name) or _reason_by_beginning(name))), "")
    found = found or next(
        (PROTECTED_PAIRS[pair] for pair in pairwise([_normalize_name(above), *plain]) if pair in PROTECTED_PAIRS), ""
    )
    if not found and plain:
        found = next((why for ending, why in PROTECTED_ENDINGS.items() if plain[-1].endswith(ending)), "")
        found = found or (REPOSITORY if plain[-1] == HEAD_FILE else "")
    return found


def _reason_by_beginning(name: str) -> str:
    return next((why for beginning, why in PROTECTED_BEGINNINGS.items() if name.startswith(beginning)), "")


def _normalize_name(name: str) -> str:
    """A name as the least exact file system sees it: without case, invisible characters, and streams."""
    shown = "".join(one for one in unicodedata.normalize("NFKC", name) if unicodedata.category(one) != "Cf")
    folded = unicodedata.normalize("NFKC", shown.casefold()).partition(":")[0].rstrip(". ")
    return ".git" if SHORT_GIT.fullmatch(folded) else folded
