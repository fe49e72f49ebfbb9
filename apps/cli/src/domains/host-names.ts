import { AppError, hostnameOf, parseItemHash, prefixOfHostname } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { findInstance, isFullId, subdomainOf } from '../instances/find.ts';
import { explainDomain, findGatewayStatus, hostAddresses, lookupDomain } from '../network/gateway.ts';
import { renderFields } from '../output/text.ts';

const HASH = /^[0-9a-f]{64}$/i;

export async function nameDomain(context: Context, reference: string): Promise<void> {
  const hash = HASH.test(reference)
    ? parseItemHash(reference)
    : (await findInstance(context, reference)).instance_id;
  const subdomain = hostnameOf(hash);
  const gateway = await findGatewayStatus(() => context.findService('gateway'));
  if (gateway === undefined)
    context.output.note('no gateway answers, so this is the host name without its domain');
  const addresses = hostAddresses(subdomain, gateway);
  context.output.result({ instance_hash: hash, subdomain, ...addresses }, addresses.hostname);
}

export async function lookUpDomain({ findService, output }: Context, text: string): Promise<void> {
  refuseCustom(text);
  const words = text.toLowerCase().split('.', 1)[0]!;
  prefixOfHostname(words);
  const record = await lookupDomain(await findService('gateway'), words);
  output.result(
    record,
    renderFields([
      ['instance', record.instance_hash],
      ['host name', record.url],
      ['ipv6', record.ipv6 || 'none yet'],
      ['active', record.active ? 'yes' : 'no'],
    ]),
  );
}

/** A gateway knows nothing of custom domains: they lead to the instance, or to its node. */
function refuseCustom(text: string): void {
  if (!text.includes('.') || subdomainOf(text) !== undefined) return;
  throw new AppError(
    'INVALID_HOSTNAME',
    `${JSON.stringify(text)} does not begin with the four words of an instance`,
    {
      details: { hint: 'of a custom domain, "skerry domain list INSTANCE" says what is missing' },
    },
  );
}

const MARKS = { true: 'ok     ', false: 'MISSING', null: '-      ' } as const;

/** Host names and ids as they are; what is neither is the name of an instance, as for the other commands. */
async function subjectOf(context: Context, reference: string): Promise<string> {
  refuseCustom(reference);
  const isHostName = reference.includes('.') || subdomainOf(reference) !== undefined;
  return isHostName || isFullId(reference) ? reference : (await findInstance(context, reference)).instance_id;
}

export async function whyDomain(context: Context, reference: string): Promise<void> {
  const { findService, output } = context;
  const subject = await subjectOf(context, reference);
  const why = await explainDomain(await findService('gateway'), subject);
  const line = (step: string, ok: boolean | null, detail: string) =>
    `  ${MARKS[`${ok}`]}  ${step.padEnd(10)}  ${detail}`;
  const lines = why.chain.map(({ step, ok, detail }) => line(step, ok, detail));
  // Browsers use TCP where it does not work: nothing is missing.
  if (why.http3) lines.push(line('http3', why.http3.ok || null, why.http3.detail));
  const verdict = why.missing ? `does not answer: ${why.missing.message}` : 'answers';
  output.result(why, [`${why.hostname} ${verdict}`, ...lines].join('\n'));
}
