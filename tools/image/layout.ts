import { TREE } from '../debian/layout.ts';

/** What is where in the container image, and how it runs. */

/** Of nobody else on a machine that has this number by chance: the container's users are not the machine's. */
export const USER = { name: 'skerry', id: 10_001 } as const;
/** Everything that a daemon or a person keeps is below it (kit's paths.ts). */
export const STATE = '/var/lib/skerry';
/** The command. */
export const ENTRYPOINT = '/usr/bin/skerry';

export const ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: STATE,
  SKERRY_HOME: STATE,
  // The gateway's native data plane was compiled when the image was made.
  SKERRY_GATEWAY_CACHE_DIR: `${TREE}/native`,
};

/** As `podman load` and `docker load` call it. */
export const imageName = (version: string) => `localhost/skerry:${version}`;
export const archiveName = (version: string, architecture: string) =>
  `skerry-${version}-${architecture}.oci.tar`;

/** Debian's part: what Node, PostgreSQL and native modules are linked with, programs that daemons run, and a shell with its tools. */
export const DEBIAN = {
  suite: 'bookworm',
  packages: [
    'base-files',
    'busybox-static',
    'iputils-ping',
    'libatomic1',
    'libc6',
    'libgcc-s1',
    'libstdc++6',
    // setpriv, which starts PostgreSQL so that it ends with the core node.
    'util-linux',
  ],
} as const;

const { name, id } = USER;

/** What Debian's scripts would make of base-passwd; PostgreSQL refuses a user without a name. */
export const FILES: Readonly<Record<string, string>> = {
  '/etc/passwd': `root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
${name}:x:${id}:${id}:Skerry:${STATE}:/bin/sh
`,
  '/etc/group': `root:x:0:\nnogroup:x:65534:\n${name}:x:${id}:\n`,
  '/etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};
