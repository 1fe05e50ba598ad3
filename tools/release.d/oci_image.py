"""Writes an OCI image layout (image-spec 1.1) with one layer: the program and the certificates of authorities on an
otherwise empty root, for an unprivileged user.

No daemon is needed. The same program, certificates, version and SOURCE_DATE_EPOCH give the same bytes.
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import os
import tarfile

# User and group of the process. The root is never written to; volumes are.
USER = 65532
# Where TLS libraries look for the certificates of authorities.
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
# Where the services keep their state: the mount point of a volume.
STATE = "var/lib/tabellion"
MEDIA = "application/vnd.oci.image"


def main():
    options = argument_parser().parse_args()
    when = int(os.environ["SOURCE_DATE_EPOCH"])
    layer = layer_of(options, when)
    packed = gzip.compress(layer, options.compression, mtime=0)
    config = encoded(image_config(options, when, digest(layer)))
    manifest = encoded(
        {
            "schemaVersion": 2,
            "mediaType": f"{MEDIA}.manifest.v1+json",
            "config": descriptor(f"{MEDIA}.config.v1+json", config),
            "layers": [descriptor(f"{MEDIA}.layer.v1.tar+gzip", packed)],
        }
    )
    index = encoded(image_index(manifest, options.version))
    files = {"oci-layout": encoded({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    files |= {f"blobs/sha256/{digest(blob)[7:]}": blob for blob in (config, packed, manifest)}
    with tarfile.open(options.output, "w", format=tarfile.USTAR_FORMAT) as archive:
        for folder in ("blobs", "blobs/sha256"):
            add(archive, folder, when, kind=tarfile.DIRTYPE, mode=0o755)
        for name, content in sorted(files.items()):
            add(archive, name, when, content)


def argument_parser():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--certificates", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--compression", type=int, default=9)
    parser.add_argument("--output", required=True)
    return parser


def layer_of(options, when):
    """Returns the uncompressed tar of the root."""
    with open(options.program, "rb") as file:
        binary = file.read()
    with open(options.certificates, "rb") as file:
        certificates = file.read()
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for folder in ("etc", "etc/ssl", "etc/ssl/certs", "etc/tabellion", "usr", "usr/bin", "var", "var/lib"):
            add(archive, folder, when, kind=tarfile.DIRTYPE, mode=0o755)
        add(archive, STATE, when, kind=tarfile.DIRTYPE, mode=0o700, owner=USER)
        add(archive, "tmp", when, kind=tarfile.DIRTYPE, mode=0o1777)
        add(archive, "etc/passwd", when, f"tabellion:x:{USER}:{USER}::/{STATE}:/sbin/nologin\n".encode())
        add(archive, "etc/group", when, f"tabellion:x:{USER}:\n".encode())
        add(archive, CERTIFICATES, when, certificates)
        add(archive, "usr/bin/tabellion", when, binary, mode=0o755)
    return layer.getvalue()


def add(archive, name, when, content=b"", kind=tarfile.REGTYPE, mode=0o644, owner=0):
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime, member.size = kind, mode, when, len(content)
    member.uid = member.gid = owner
    archive.addfile(member, io.BytesIO(content))


def image_config(options, when, diff_id):
    created = datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "created": created,
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine],
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/usr/bin/tabellion"],
            "Cmd": ["serve", "--config", "/etc/tabellion/tabellion.toml"],
            "WorkingDir": f"/{STATE}",
            "Env": ["PATH=/usr/bin"],
            "Labels": {
                "org.opencontainers.image.title": "tabellion",
                "org.opencontainers.image.version": options.version,
                "org.opencontainers.image.revision": options.revision,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created": created, "created_by": "tools/release image"}],
    }


def image_index(manifest, version):
    entry = descriptor(f"{MEDIA}.manifest.v1+json", manifest)
    # The name under which `podman load` and `docker load` store the image.
    name = f"tabellion:{version}"
    entry["annotations"] = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": f"docker.io/library/{name}"}
    return {"schemaVersion": 2, "mediaType": f"{MEDIA}.index.v1+json", "manifests": [entry]}


def descriptor(media_type, content):
    return {"mediaType": media_type, "digest": digest(content), "size": len(content)}


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def encoded(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
