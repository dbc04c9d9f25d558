"""Environment variables that commands of a session get beside the ordinary ones."""


class Variables(dict[str, str]):
    """What the user's hooks have set when the session began."""
