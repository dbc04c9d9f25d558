"""The variables that lead programs of a confined command to the proxy."""

from ferrule.support.sandbox.profile import Profile

PORT = 3128
"""Where the proxy is to be found inside. The network there has nobody else in it."""
ADDRESS = f"http://127.0.0.1:{PORT}"
_NAMES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "npm_config_proxy")


def proxied(profile: Profile) -> dict[str, str]:
    """What is added to the environment where hosts are reached through the proxy."""
    if profile.network or not profile.proxy:
        return {}
    env = dict.fromkeys(_NAMES, profile.proxy)
    return env | dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1") | {"NODE_USE_ENV_PROXY": "1"}
