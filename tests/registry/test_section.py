"""The tools section of a system prompt: the names, a line for each tool, and the guidance of those that have some."""

from tests.golden import Golden
from tests.registry.brought import Brought, session
from tests.rows import each_row

from ferrule.registry.entry import Registered, plain_face
from ferrule.registry.search import tools_section
from ferrule.tools import BUILTIN, load


def entry(name: str, words: str = "Do it.", guidance: str = "") -> Registered:
    tool = Brought(name, words, guidance=guidance)
    return Registered(plain_face(tool), tool)


def test_names_are_sorted_and_guidance_comes_last():
    entries = [
        entry("write", "Write a file."),
        entry("bash", "Run a command.\n\nMore about it.", "Be careful.\n\nVery.\n"),
        entry("read", "\nRead a file. Or a folder."),
        entry("edit", "Edit a file.", "Read it first."),
    ]

    assert tools_section(entries) == (
        "Tools: bash, edit, read, write.\n"
        "bash: Run a command.\n"
        "edit: Edit a file.\n"
        "read: Read a file. Or a folder.\n"
        "write: Write a file.\n"
        "\n"
        "## bash\n"
        "Be careful.\n\nVery.\n"
        "\n"
        "## edit\n"
        "Read it first."
    )


def test_without_guidance_there_are_only_lines():
    assert tools_section([entry("read", "Read a file.")]) == "Tools: read.\nread: Read a file."


def test_where_a_model_is_shown_the_definitions_only_guidance_is_told():
    entries = [entry("bash", "Run a command.", "Be careful."), entry("read", "Read a file.")]

    assert tools_section(entries, listed=False) == "## bash\nBe careful."


def test_what_ah_would_put_into_its_prompt_is_reviewed(golden: Golden):
    registry = session("ah")
    registry.bring("custom", [Brought("weather.sh", "Tell the weather.", guidance="Give a city as `args`.")])
    entries = [registry.resolve(face.name) for face in registry.visible_faces()]

    golden.check("section/ah.txt", tools_section(entries))


@each_row("name", BUILTIN)
def test_built_in_tools_have_no_guidance(name):
    """They are not loaded to be asked for it: all that they have to say is in their faces' words."""
    assert load(name).guidance == ""
