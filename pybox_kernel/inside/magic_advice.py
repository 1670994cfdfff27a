"""What to do instead of a magic or a shell line, which a box does not have, in one sentence each."""

from __future__ import annotations

INSTALL = (
    "Nothing can be installed in a box, which has no network; to have %s, name it in a file requirements.txt, run"
    " `pybox-kernel image build mine --from requirements.txt --yes` in a terminal, and put `%%%%pybox --image mine`"
    " first in the cell."
)
DOWNLOAD = "A box has no network, so nothing can be fetched."

INSTALLERS = ("pip", "pip3", "conda", "mamba", "uv", "apt", "apt-get", "npm")
COMMANDS = {
    **dict.fromkeys(("wget", "curl", "git", "gdown", "aria2c", "scp", "ssh", "kaggle"), DOWNLOAD),
    **dict.fromkeys(("ls", "dir", "find", "tree"), "To list files, use os.listdir() or pathlib.Path('.').iterdir()."),
    **dict.fromkeys(("cat", "head", "tail", "less", "more"), "To read a file, use print(open('name').read())."),
    "cd": "To change the folder, use os.chdir('name').",
    "pwd": "To see the folder, use os.getcwd().",
    "mkdir": "To make a folder, use os.makedirs('name', exist_ok=True).",
    "rm": "To delete a file, use os.remove('name').",
    "rmdir": "To delete a folder, use os.rmdir('name').",
    "cp": "To copy a file, use shutil.copy('from', 'to').",
    "mv": "To move a file, use shutil.move('from', 'to').",
    "echo": "To print something, use print().",
    "touch": "To make an empty file, use open('name', 'a').close().",
    "unzip": "To unpack an archive, use shutil.unpack_archive('name').",
    "tar": "To unpack an archive, use shutil.unpack_archive('name').",
    "env": "To see the environment, use dict(os.environ).",
    "nvidia-smi": "A box has no graphics processor.",
}
MAGICS = {
    **dict.fromkeys(("env", "set_env"), "To set a variable of the environment, use os.environ['NAME'] = 'value'."),
    **dict.fromkeys(("run", "load", "loadpy"), "Only this cell is in the box; paste the code of the file into it."),
    **dict.fromkeys(("who", "whos", "who_ls"), "To see the names that this cell has made, use dir()."),
    **dict.fromkeys(("debug", "pdb"), "A box has no keyboard, so nothing can be debugged by hand; use print()."),
    **dict.fromkeys(("prun", "lprun"), "To see where time goes, use cProfile.run('statement')."),
    **dict.fromkeys(("memit", "mprun"), "To see how much memory is used, use the tracemalloc module."),
    **dict.fromkeys(("history", "hist", "recall", "store", "reset", "rerun"), "Each cell starts anew in a box."),
    **dict.fromkeys(("html", "HTML"), "To show HTML, use display(HTML('...')) from IPython.display."),
    **dict.fromkeys(("javascript", "js"), "Scripts are not run on the page, whatever shows them."),
    **dict.fromkeys(("markdown", "latex", "svg", "SVG"), "To show text, use print()."),
    **dict.fromkeys(
        ("bash", "sh", "script", "system", "sx", "cmd", "powershell"),
        "Shell commands do not work in a box; use Python's own functions.",
    ),
    **dict.fromkeys(("ruby", "perl", "R", "cython", "julia", "sql"), "A box runs Python and nothing else."),
    "pylab": "Use import numpy and import matplotlib.pyplot, and %matplotlib inline.",
    "matplotlib": "A box has no screen; use %matplotlib inline.",
    "pinfo": "To see help, use help(name).",
    "tensorboard": "A box has no network, so no page can be served from it.",
}


def advice_on_command(command: str) -> str:
    """On what stands after ``!``, or after ``%`` where it is a command."""
    words = command.split()
    word = words[0] if words else ""
    if word.startswith("python"):
        return (
            advice_on_installing(words) if "pip" in words else "This cell is Python already; write the program into it."
        )
    if word in INSTALLERS:
        return advice_on_installing(words)
    return COMMANDS.get(word, "Lines that begin with ! do not work in a box; use Python's own functions.")


def advice_on_installing(words: list[str]) -> str:
    asked = words[words.index("install") + 1 :] if "install" in words else []
    named = [word.strip("'\"") for word in asked if not word.startswith("-")]
    return INSTALL % (", ".join(named)[:100] or "a package")


def advice_on_magic(name: str, argument: str, whole_cell: bool = False) -> str:
    if name == "pybox":
        return advice_on_pybox(argument, whole_cell)
    if name in INSTALLERS:
        return advice_on_installing([name, *argument.split()])
    if name in ("load_ext", "reload_ext"):
        return "The extension %s is not in a box; leave the line out." % argument[:60]
    known = MAGICS.get(name) or COMMANDS.get(name)
    if known is not None:
        return known
    return "%s%s does not work in a box, which runs plain Python." % ("%%" if whole_cell else "%", name[:60])


def advice_on_pybox(argument: str, whole_cell: bool) -> str:
    if argument == "summary" and not whole_cell:
        return "Put %pybox summary in a cell of its own."
    if whole_cell:
        return "Put %%pybox in the first line of the cell, with nothing above it."
    return "A %pybox line is a cell of its own, and for a notebook alone."
