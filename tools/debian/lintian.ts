import { TREE } from './layout.ts';

/** What Debian's lintian says of our packages that is meant so, each with its reason. */
interface Answer {
  readonly why: string;
  /** Tags, each with what it is said of. */
  readonly tags: readonly string[];
}

const ALWAYS: readonly Answer[] = [
  {
    why: 'The project has no mail address.',
    tags: ['bogus-mail-host *', 'bogus-mail-host-in-debian-changelog *'],
  },
  {
    why: 'zstd unpacks many times as fast as xz, which counts on small servers. dpkg reads it from Debian 12 on.',
    tags: ['malformed-deb-archive *'],
  },
  {
    why: 'Settings hold secrets.',
    tags: ['non-standard-file-perm 0640 != 0644 [etc/skerry/*.env]'],
  },
  {
    why: 'deb-systemd-invoke of Debian 12 knows neither reload nor try-restart; nothing is started that did not run.',
    tags: ['maintainer-script-calls-systemctl *'],
  },
];

const OF_TREE: readonly Answer[] = [
  {
    why: 'Node, PostgreSQL and native modules are what their makers publish, byte for byte.',
    tags: [
      'custom-library-search-path',
      'embedded-library',
      'hardening-no-pie',
      'library-not-linked-against-libc',
      'script-not-executable',
      'shared-library-is-executable',
      'shared-library-lacks-prerequisites',
      'unstripped-binary-or-object',
    ].map((tag) => `${tag} *[${TREE.slice(1)}/*]`),
  },
  {
    why: 'Programs of the package are run by the Node in it.',
    tags: [`missing-dep-for-interpreter *[${TREE.slice(1)}/*]`],
  },
];

/** The file of overrides of a package (lintian(1)). Pure. */
export const renderOverrides = (name: string, hasTree: boolean): string =>
  [...ALWAYS, ...(hasTree ? OF_TREE : [])]
    .map(({ why, tags }) => `# ${why}\n${tags.map((tag) => `${name}: ${tag}\n`).join('')}`)
    .join('\n');
