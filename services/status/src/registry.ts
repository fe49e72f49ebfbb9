/** What is checked, and how it is called. */
export interface Target {
  /** Tells a service from all others, also after a restart. */
  readonly key: string;
  readonly name: string;
  readonly group: Group;
  /** Answers a GET with 200 when all is well. */
  readonly url: string;
  /** Whether the url is a stranger's word, so that it may not lead to private addresses. */
  readonly isForeign: boolean;
}

export const GROUPS = { core: 1, compute: 2, service: 3 } as const;
export type Group = keyof typeof GROUPS;

const NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/;
/** Of a node id, as it is shown. */
const ID_CHARS_SHOWN = 12;

/** `NAME=URL` of the settings. */
export function parseNamedService(text: string): { name: string; url: string } {
  const [, name = '', url = ''] = /^([^=]*)=(.*)$/.exec(text) ?? [];
  const parsed = URL.parse(url);
  if (!NAME.test(name) || !parsed || !/^https?:$/.test(parsed.protocol) || parsed.username || parsed.password)
    throw new Error('expected NAME=URL with an http or https URL, without user name or password');
  return { name, url };
}

export function coreTarget(coreUrl: string): Target {
  return { key: 'core', name: 'core node', group: 'core', url: `${coreUrl}/health`, isForeign: false };
}

export const namedTarget = ({ name, url }: { name: string; url: string }): Target => ({
  key: `service:${name}`,
  name,
  group: 'service',
  url,
  isForeign: false,
});

/** A compute node that announced itself; undefined where its word is no address that can be asked. */
export function computeTarget({ nodeId, url }: { nodeId: string; url: string }): Target | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, username, password, search, hash, href } = new URL(url);
  if (!/^https?:$/.test(protocol) || username || password || search || hash) return undefined;
  return {
    key: `compute:${nodeId}`,
    name: `compute node ${nodeId.slice(0, ID_CHARS_SHOWN)}`,
    group: 'compute',
    url: `${href.replace(/\/+$/, '')}/status/config`,
    isForeign: true,
  };
}
