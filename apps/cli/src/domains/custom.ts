import { setTimeout as delay } from 'node:timers/promises';
import { call, findNodeUrl, readAggregate } from '@skerry/client';
import type { SubmittedMessage } from '@skerry/client/core-client';
import { domainRules, zoneOfTarget } from '@skerry/protocol/api/compute/domain-rules';
import { type DomainView, NODE_API } from '@skerry/protocol/api/compute/node';
import { AppError, DOMAINS_KEY, normaliseAddress, parseDomainName } from '@skerry/protocol/forms';
import { shellWord } from '@skerry/protocol/text/shell-word';
import type { Context } from '../context.ts';
import { findInstance } from '../instances/find.ts';
import { findMeant } from '../instances/meant.ts';
import { type Accepted, afterAccepted } from '../messages/accepted.ts';
import { verdictFields } from '../messages/verdict.ts';
import { renderTable } from '../output/text.ts';

/** The node hears of the aggregate at once and then asks the name servers, which may take some seconds. */
const HEARD_WITHIN_MS = 30_000;
const POLL_MS = 500;

const NOT_SERVED = 'its operator must set SKERRY_COMPUTE_DOMAIN_ZONE to serve custom domains';

function parseName(text: string): string {
  const name = parseDomainName(text);
  if (name !== undefined) return name;
  throw new AppError(
    'INVALID_HOSTNAME',
    `${JSON.stringify(text)} is not a domain name such as www.example.org`,
  );
}

async function writeClaim(context: Context, name: string, claim: object | null): Promise<SubmittedMessage> {
  const core = await context.openWriter();
  const content = { key: DOMAINS_KEY, content: { [name]: claim } };
  return core.postMessage({ type: 'AGGREGATE', content });
}

/**
 * A claim as its node tells it. Of the node are what it found and its zone; the records follow from the name and its owner.
 * Throws UNEXPECTED_ANSWER.
 */
export function readDomain(told: DomainView): DomainView {
  const { name, owner } = told;
  const target = told.rules.find((rule) => rule.name === 'cname')?.dns.value ?? '';
  const zone = zoneOfTarget(name, target);
  if (zone !== undefined) return { ...told, rules: domainRules(name, owner, zone) };
  throw new AppError(
    'UNEXPECTED_ANSWER',
    `the node says that ${name} has to point to ${JSON.stringify(target)}, which is not in a zone of its own`,
  );
}

/** What a node says of the domains of an instance. */
async function readDomains(
  nodeUrl: string,
  { id, owner }: { readonly id: string; readonly owner: string },
): Promise<DomainView[]> {
  const told = await call(nodeUrl, NODE_API.listDomains, {});
  return told
    .filter((one) => one.item_hash === id && one.owner === owner && parseDomainName(one.name) === one.name)
    .map(readDomain);
}

/** Whether a node says that it serves no custom domains. One of an older release does not say. */
async function servesNone(nodeUrl: string): Promise<boolean> {
  const { custom_domains: served } = await call(nodeUrl, NODE_API.getNodeConfig, {});
  return served?.zone === null;
}

/** The names that an owner claims, each with the instance that it is to lead to. */
async function readClaims(context: Context, owner: string): Promise<ReadonlyMap<string, string>> {
  const claims = await readAggregate(context.coreUrl, owner, DOMAINS_KEY);
  const entries = typeof claims === 'object' && claims !== null ? Object.entries(claims) : [];
  return new Map(
    entries.flatMap(([name, claim]: [string, unknown]) => {
      const { message_id: id } = (claim ?? {}) as { message_id?: unknown };
      return typeof id === 'string' ? [[name, id] as const] : [];
    }),
  );
}

/** What is to be written into the DNS, and whether it was found there. */
export function renderDomain({ name, active, cname, owner_proof: proof, rules }: DomainView): string {
  const foundOf = { cname, owner_proof: proof };
  const seen = (found: boolean | 'unknown') =>
    found === 'unknown' ? 'no name server answers' : found ? 'found' : 'not found';
  const rows = rules.map(({ name: rule, dns }) => [
    dns.type.toUpperCase(),
    dns.name,
    dns.value,
    seen(foundOf[rule]),
  ]);
  return `${name} ${active ? 'leads to the instance' : 'is not active yet; it needs these DNS records'}\n${renderTable(['TYPE', 'NAME', 'VALUE', 'FOUND'], rows)}`;
}

/** What another claims for an instance, its node does not even look at. Throws NOT_PERMITTED. */
async function checkOwner({ loadSigner }: Context, owner: string, reference: string): Promise<void> {
  const { address } = await loadSigner();
  if (normaliseAddress(address) === normaliseAddress(owner)) return;
  throw new AppError(
    'NOT_PERMITTED',
    `nothing was claimed: only the owner of ${reference}, ${owner}, can attach a domain to it, and your key is that of ${address}`,
  );
}

/** Claims a name for an instance and says which records make it so. Throws DOMAINS_NOT_SERVED, NOT_PERMITTED, before anything is claimed. */
export async function attachDomain(context: Context, text: string, reference: string): Promise<void> {
  const name = parseName(text);
  const { instance_id: id, owner, node_address: node } = await findMeant(context, reference);
  if (!node)
    throw new AppError(
      'INSTANCE_NOT_READY',
      `no node has been chosen for ${reference} yet, so nothing serves the domain`,
    );
  const nodeUrl = await findNodeUrl(context.reader, node);
  if (await servesNone(nodeUrl))
    throw new AppError('DOMAINS_NOT_SERVED', `the node of ${reference} serves no custom domains`, {
      details: { hint: NOT_SERVED },
    });
  await checkOwner(context, owner, reference);
  const sent = await writeClaim(context, name, { message_id: id, type: 'instance' });
  const hint = `your claim stays published; "skerry domain list ${shellWord(reference)}" shows when the node knows it`;
  const accepted: Accepted = { what: `${name} was claimed`, ids: { claim_hash: sent.item_hash }, hint };
  const shown = await afterAccepted(context.output, accepted, () =>
    waitUntilKnown(context, { nodeUrl, name, instance: { id, owner }, reference }),
  );
  context.output.result(
    { ...shown, claim_hash: sent.item_hash, ...verdictFields(sent) },
    renderDomain(shown),
  );
}

interface Claimed {
  readonly nodeUrl: string;
  readonly name: string;
  readonly instance: { readonly id: string; readonly owner: string };
  /** As the person named the instance. */
  readonly reference: string;
}

/** What the node says of a name that was claimed. Throws TIMED_OUT. */
async function waitUntilKnown(
  { output }: Context,
  { nodeUrl, name, instance, reference }: Claimed,
): Promise<DomainView> {
  using progress = output.progress();
  for (const deadlineMs = Date.now() + HEARD_WITHIN_MS; ; await delay(POLL_MS)) {
    const shown = (await readDomains(nodeUrl, instance)).find((one) => one.name === name);
    if (shown) return shown;
    if (Date.now() > deadlineMs) throw new AppError('TIMED_OUT', `the node of ${reference} does not know it`);
    progress.show('waiting for the node to check the DNS');
  }
}

/** Takes a claim back. Throws HOSTNAME_NOT_FOUND where there is none. */
export async function detachDomain(context: Context, text: string): Promise<void> {
  const name = parseName(text);
  const { address } = await context.loadSigner();
  if (!(await readClaims(context, address)).has(name))
    throw new AppError('HOSTNAME_NOT_FOUND', `you have not attached ${name}`, {
      details: { hint: '"skerry domain list INSTANCE" shows the custom domains of an instance' },
    });
  const answer = await writeClaim(context, name, null);
  context.output.result({ name, item_hash: answer.item_hash, ...verdictFields(answer) }, `detached ${name}`);
}

/** A claim of which the instance's node says nothing. */
const unserved = (name: string, owner: string, id: string): DomainView => ({
  ...{ name, owner, item_hash: id, active: false },
  ...{ cname: 'unknown', owner_proof: 'unknown', rules: [] },
});

async function whyUnserved(nodeUrl: string | undefined): Promise<string> {
  if (nodeUrl === undefined) return 'no node has been chosen for the instance yet';
  return (await servesNone(nodeUrl))
    ? `its node serves no custom domains: ${NOT_SERVED}`
    : 'its node does not know it yet';
}

/** The custom domains of an instance, and what is missing: what its owner claims, and what its node says of it. */
export async function showDomains(context: Context, reference: string): Promise<void> {
  const { instance_id: id, owner, node_address: node } = await findInstance(context, reference);
  const nodeUrl = node ? await findNodeUrl(context.reader, node) : undefined;
  const served = nodeUrl === undefined ? [] : await readDomains(nodeUrl, { id, owner });
  const others = [...(await readClaims(context, owner))]
    .filter(([name, claimed]) => claimed === id && !served.some((one) => one.name === name))
    .map(([name]) => unserved(name, owner, id));
  const shown = [...served, ...others];
  const why = others.length === 0 ? '' : await whyUnserved(nodeUrl);
  const texts = [...served.map(renderDomain), ...others.map(({ name }) => `${name} is claimed, but ${why}`)];
  context.output.result(shown, texts.join('\n\n'));
  if (shown.length === 0 && !context.output.json) context.output.note('no custom domains');
}
