"""The first words between Ferrule and a language server: what each says that it can do."""

import os
from collections.abc import Mapping
from typing import Any

from ferrule.core.version import __version__
from ferrule.workspace.languages.positions import Encoding, uri
from ferrule.workspace.languages.table import Row

_SYMBOL_KINDS = list(range(1, 27))
CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-16"]},
    "window": {"workDoneProgress": True, "showMessage": {}},
    "workspace": {
        "workspaceFolders": True,
        "configuration": True,
        "applyEdit": False,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "symbol": {"symbolKind": {"valueSet": _SYMBOL_KINDS}},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "definition": {"linkSupport": True},
        "declaration": {"linkSupport": True},
        "typeDefinition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "documentSymbol": {
            "hierarchicalDocumentSymbolSupport": True,
            "symbolKind": {"valueSet": _SYMBOL_KINDS},
        },
        "callHierarchy": {},
        "publishDiagnostics": {
            "versionSupport": True,
            "relatedInformation": True,
            "codeDescriptionSupport": True,
            "tagSupport": {"valueSet": [1, 2]},
        },
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": True},
    },
}
"""What this side can do."""


def greeting(row: Row, root: str) -> dict[str, Any]:
    """The parameters of the first question."""
    return {
        # Where it is confined it does not see this process, and would take it for dead.
        "processId": None,
        "clientInfo": {"name": "ferrule", "version": __version__},
        "locale": "en",
        "rootPath": root,
        "rootUri": uri(root),
        "workspaceFolders": folders(root),
        "capabilities": CAPABILITIES,
        "initializationOptions": dict(row.options),
        "trace": "off",
    }


def folders(root: str) -> list[dict[str, str]]:
    return [{"uri": uri(root), "name": os.path.basename(root) or root}]


def encoding(capabilities: Mapping[str, Any]) -> Encoding:
    """In which units it counts; UTF-16 where it does not say."""
    said = capabilities.get("positionEncoding")
    return "utf-8" if said == "utf-8" else "utf-32" if said == "utf-32" else "utf-16"


_PROVIDED = {
    "textDocument/prepareCallHierarchy": "callHierarchyProvider",
    "callHierarchy/incomingCalls": "callHierarchyProvider",
    "callHierarchy/outgoingCalls": "callHierarchyProvider",
    "textDocument/prepareTypeHierarchy": "typeHierarchyProvider",
    "workspace/symbol": "workspaceSymbolProvider",
    "textDocument/formatting": "documentFormattingProvider",
}
"""Methods whose capability has another name than they have."""


def provided(capabilities: Mapping[str, Any], method: str) -> bool:
    """Did it say at its start that it can do this?"""
    name = _PROVIDED.get(method) or f"{method.rpartition('/')[2]}Provider"
    said = capabilities.get(name)
    return said is not None and said is not False
