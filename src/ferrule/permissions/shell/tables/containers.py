"""Rows of containers, clusters, infrastructure and databases: none is harmless, all reach beyond the workspace."""

import re
from collections.abc import Mapping

from ferrule.permissions.shell.form import ArgumentAnalysis, CommandArguments, Form

_ELSEWHERE = (
    "-H --host -c --context --config --tlscacert= takes another machine; -v --volume --mount --privileged --device"
    " --cap-add --security-opt --pid --ipc --userns --network --net --env-file --volumes-from --entrypoint= opens"
    " the machine"
)


_SQL = (
    r"(?is)writefile|load_extension|readfile|edit\s*\(|attach|pragma|insert|replace\s+into|update|delete|drop|;.*\S|\n\s*\."
    r"|fts3_tokenizer|fsdir|lsdir|zipfile"
)
"""What makes a statement do more than read, wherever it stands in it."""


def _compose(*subs: str) -> str:
    """Both names of the program, with each of these sub-commands."""
    return ", ".join(f"{name} {sub}" for name in ("docker compose", "docker-compose") for sub in subs)


def _terraform(*subs: str) -> str:
    return ", ".join(f"{name} {sub}" for name in ("terraform", "tofu") for sub in subs)


def _cluster(given: CommandArguments) -> ArgumentAnalysis:
    words = " ".join(word.text for word in given.operands)
    tells = re.search(r"(?i)\bsecrets?\b|(?:^| )all(?: |$)|,", words)
    return ArgumentAnalysis("kubectl tells secrets with such a word" if tells else "")


def _sqlite(given: CommandArguments) -> ArgumentAnalysis:
    statements = given.operands[1:]
    if any(word.text.startswith("file:") for word in given.operands[:1]):
        return ArgumentAnalysis("sqlite3 takes such a name for an address, which leads anywhere")
    if not statements:
        return ArgumentAnalysis("sqlite3 runs whatever it reads")
    if any(not word.known for word in statements):
        return ArgumentAnalysis("sqlite3's statement is not certain")
    plain = all(re.fullmatch(r"(?is)\s*(select|explain|with|\.schema|\.tables)\b.*", word.text) for word in statements)
    odd = any(re.search(_SQL, word.text) for word in statements)
    # Otherwise it may write a journal, or a new file where there is none.
    return ArgumentAnalysis(
        "" if plain and not odd else "sqlite3 may write, load or run with such a statement",
        harmless=given.has("-readonly"),
    )


def _psql(given: CommandArguments) -> ArgumentAnalysis:
    return ArgumentAnalysis("psql runs whatever it reads" if not given.has("-l", "--list", "-V", "--version") else "")


_COMPOSE = " -f:r --file:r -p:x --project-name:x --profile:x"
_KUBE = (
    "-A -n:x -l:x -o:=json|yaml|wide|name|jsonpath=.*|custom-columns=.* -w -L:x --namespace:x --all-namespaces"
    " --selector:x --output:=json|yaml|wide|name|jsonpath=.*|custom-columns=.* --show-labels --no-headers"
    " --sort-by:x --field-selector:x --watch --context:x --ignore-not-found --label-columns:x"
)
_KUBE_DANGERS = (
    "--kubeconfig= loads settings that run programs; --server -s --token --as --certificate-authority"
    " --insecure-skip-tls-verify --raw --cluster --user= takes another way; --template= may load a file; -k"
    " --kustomize= takes a folder or an address; --cache-dir --profile-output= writes a file"
)

ROWS: Mapping[str, Form] = {
    "docker, podman": Form("-v --version", "text*", subs=True, ends=True, dangers=_ELSEWHERE),
    "docker ps, docker images, docker stats, docker version, docker info, docker top, docker port, docker history,"
    " docker diff, docker search, podman ps, podman images": Form(
        "-a -q -s -l -n:n -f:x --all --quiet --no-trunc --size --filter:x --format:x --latest --last:n --no-stream"
        " --digests --tree",
        "text*", dangers=_ELSEWHERE,
    ),
    "docker logs, podman logs": Form(
        "-ft -n:x --follow --tail:x --timestamps --since:x --until:x --details", "text",
    ),
    "docker inspect, podman inspect": Form("-s -f:x --format:x --size --type:x", "text*"),
    "docker exec, podman exec": Form(
        "-it -d -w:x -e:x --interactive --tty --workdir:x --env:x --detach", "text text*", ends=True, unsure=True,
        elsewhere=True, dangers=_ELSEWHERE + "; -u --user= becomes another user",
    ),
    "docker run, podman run": Form(
        "-itd -p:x -e:x -w:x --rm --interactive --tty --detach --name:x --publish:x --env:x --workdir:x --init"
        " --platform:x --pull:x --read-only --memory:x -m:x --cpus:x",
        "text text*", ends=True, unsure=True, dangers=_ELSEWHERE,
    ),
    "docker build, podman build": Form(
        "-q -t:x -f:r --tag:x --file:r --quiet --no-cache --target:x --build-arg:x --platform:x --progress:x --pull"
        " --load",
        "read", project=True, unsure=True,
        dangers=_ELSEWHERE + (
            "; -o --output --iidfile --metadata-file= writes a file; --secret --ssh= reads secrets"
        ),
    ),
    "docker start, docker stop, docker restart, docker kill, docker rm, docker rmi, docker pull, docker tag, docker"
    " wait, docker pause, docker unpause": Form(
        "-fvq -t:n -s:x --force --volumes --time:n --quiet --signal:x --platform:x", "text*", dangers=_ELSEWHERE,
    ),
    "docker compose, docker-compose": Form(
        _COMPOSE + " --version", "text*", subs=True, ends=True,
        dangers=_ELSEWHERE + "; --env-file --project-directory= loads settings",
    ),
    _compose("ps", "logs", "images", "top", "ls", "version", "port"): Form(
        "-aqft -n:x --all --quiet --services --follow --tail:x --timestamps --since:x --format:x --no-color"
        " --no-log-prefix --status:x",
        "text*", unsure=True,
    ),
    _compose("up", "down", "start", "stop", "restart", "build", "pull", "rm", "create"): Form(
        "-dvfs -t:n --detach --build --no-build --force-recreate --no-recreate --remove-orphans --volumes --wait"
        " --no-deps --quiet-pull --pull:x --no-cache --force --stop --timeout:n --rmi:x",
        "text*", project=True, unsure=True,
    ),
    _compose("exec", "run"): Form(
        "-Td -e:x -w:x --rm --no-deps --detach --env:x --workdir:x --index:n --no-TTY", "text text*", ends=True,
        project=True, unsure=True, elsewhere=True, dangers=_ELSEWHERE,
    ),
    "docker network, docker volume, docker image, docker container, docker system, docker context, docker buildx": Form(
        "", "text*", subs=True,
    ),
    "docker network ls, docker network inspect, docker volume ls, docker volume inspect, docker image ls, docker"
    " image inspect, docker container ls, docker container inspect, docker system df, docker context ls, docker"
    " buildx ls": Form("-aqv -f:x --all --quiet --filter:x --format:x --no-trunc --verbose", "text*"),
    "kubectl, oc": Form(
        "-n:x --namespace:x --context:x --version", "text*", subs=True, ends=True, dangers=_KUBE_DANGERS,
    ),
    "kubectl get, kubectl describe, kubectl top, kubectl explain, kubectl api-resources, kubectl version, kubectl"
    " cluster-info, kubectl events": Form(
        _KUBE + " --recursive --client --api-group:x --verbs:x --namespaced:x --containers", "text*",
        check=_cluster, dangers=_KUBE_DANGERS,
    ),
    "kubectl logs": Form(
        "-f -p -c:x -n:x -l:x --follow --previous --container:x --namespace:x --selector:x --tail:x --since:x"
        " --timestamps --all-containers --prefix --context:x --max-log-requests:n",
        "text*", dangers=_KUBE_DANGERS,
    ),
    "kubectl config": Form("", "text*", subs=True),
    "kubectl config current-context, kubectl config get-contexts": Form("-o:=name --no-headers", "text*"),
    "kubectl rollout": Form("", "text*", subs=True),
    "kubectl rollout status, kubectl rollout history, kubectl rollout restart, kubectl rollout undo": Form(
        "-n:x --namespace:x --timeout:x --watch:x --context:x", "text*", dangers=_KUBE_DANGERS,
    ),
    "kubectl apply, kubectl delete, kubectl create, kubectl diff": Form(
        "-R -n:x -f:r -l:x --namespace:x --filename:r --dry-run:x --context:x --recursive --wait:x --timeout:x"
        " --ignore-not-found --now --server-side --selector:x",
        "text*", unsure=True, dangers=_KUBE_DANGERS,
    ),
    "kubectl scale": Form("-n:x --namespace:x --replicas:n --context:x", "text*", dangers=_KUBE_DANGERS),
    "kubectl exec": Form(
        "-itq -n:x -c:x --namespace:x --container:x --stdin --tty --context:x", "text text*", unsure=True,
        elsewhere=True, dangers=_KUBE_DANGERS,
    ),
    "helm": Form("", "text*", subs=True),
    "helm list, helm status, helm history, helm version, helm lint": Form(
        "-Aaq -n:x -o:x --namespace:x --all-namespaces --output:x --all --short", "text*", unsure=True,
    ),
    "terraform, tofu": Form(
        "-version --version", "text*", subs=True, ends=True, whole=True, dangers="-chdir= takes another project",
    ),
    _terraform("plan", "validate", "show", "output", "init", "graph", "providers", "version", "refresh"): Form(
        "-no-color -json -input:x -lock:x -refresh:x -detailed-exitcode -compact-warnings -upgrade -backend:x"
        " -destroy -target:x -var:x -var-file:r -parallelism:n -reconfigure -raw",
        "text*", whole=True, project=True, unsure=True,
        dangers="-out -generate-config-out -state -state-out= writes a file; -plugin-dir -backend-config"
        " -from-module= loads settings",
    ),
    "terraform fmt, tofu fmt": Form("-check -diff -recursive -list:x -write:x -no-color", "write*", whole=True),
    "terraform apply, terraform destroy, tofu apply, tofu destroy": Form(
        "-no-color -input:x -auto-approve -target:x -var:x -var-file:r -lock:x -parallelism:n -compact-warnings",
        "read?", whole=True, project=True, unsure=True,
    ),
    "terraform state, terraform workspace": Form("", "text*", subs=True),
    "terraform state list, terraform state show, terraform workspace list, terraform workspace show": Form(
        "-no-color -id:x", "text*", whole=True, project=True,
    ),
    "psql": Form(
        "-lwAtqXV -h:x -p:n -U:x -d:x --list --host:x --port:n --username:x --dbname:x --version", "text? text?",
        check=_psql,
        dangers="-c --command= may run a program; -f --file= runs a script; -o --output -L --log-file= writes a"
        " file; -v --set --variable= changes how it runs",
    ),
    "sqlite3": Form(
        "-header -csv -json -column -line -list -table -markdown -box -batch -readonly -safe -noheader -version"
        " -separator:x -nullvalue:x",
        "read text*", whole=True, harmless=True, check=_sqlite,
        dangers="-cmd= may run a program; -init= runs a script; -A -archive= writes files; -unsafe-testing= opens"
        " more",
    ),
    "mysql, redis-cli, mongosh": Form("--version -V", ""),
    "aws, gcloud, az": Form("--version", "text*", subs=True),
}  # fmt: skip
