import { type AskedSigner, CoreClient } from '@skerry/client';
import {
  AppError,
  DOMAINS_KEY,
  parseDomainName,
  parseInstanceContent,
  parseInstanceUpdateContent,
  parseProgramContent,
} from '@skerry/protocol';

/** What an owner can have done. Contents are those of messages (docs/messages.md); the node judges them. */
export type Action =
  | { readonly kind: 'createInstance'; readonly content: Readonly<Record<string, unknown>> }
  | { readonly kind: 'createProgram'; readonly content: Readonly<Record<string, unknown>> }
  | {
      readonly kind: 'control';
      readonly instanceId: string;
      readonly action: 'start' | 'stop' | 'restart';
      /** `updated_at` of the machine as the owner saw it. */
      readonly after: number;
    }
  | {
      readonly kind: 'update';
      readonly instanceId: string;
      /** What is changed, as a whole. */
      readonly changes: Readonly<Record<string, unknown>>;
      readonly after: number;
    }
  | {
      readonly kind: 'domain';
      /** As it was typed. */
      readonly name: string;
      /** Where it is to lead; null: nowhere any more. */
      readonly instanceId: string | null;
    }
  | { readonly kind: 'forget'; readonly hashes: readonly string[] };

export interface Done {
  /** Of the message that was sent. */
  readonly itemHash: string;
}

/** The claim of a name for a machine, or the end of it (docs/operating.md, "Custom domains"). */
function claimOf(text: string, instanceId: string | null): object {
  const name = parseDomainName(text);
  if (name === undefined)
    throw new AppError(
      'INVALID_HOSTNAME',
      `${JSON.stringify(text)} is not a domain name such as www.example.org`,
    );
  const claim = instanceId === null ? null : { message_id: instanceId, type: 'instance' };
  return { key: DOMAINS_KEY, content: { [name]: claim } };
}

/** Throws INVALID_CONTENT for what a core node refuses whoever signs it: nobody is asked to sign that. */
function check(action: Action): void {
  if (action.kind === 'createInstance') parseInstanceContent(action.content);
  if (action.kind === 'createProgram') parseProgramContent(action.content);
  if (action.kind === 'update')
    parseInstanceUpdateContent({ instance_id: action.instanceId, ...action.changes });
}

/** Has an action signed and sends it. Throws AppError, also where the owner refuses. */
export async function act(coreUrl: string, action: Action, signer: AskedSigner | undefined): Promise<Done> {
  if (!signer) throw new AppError('SIGNATURE_REQUIRED', 'this requires a key');
  check(action);
  const core = new CoreClient({ url: coreUrl, signer });
  switch (action.kind) {
    case 'createInstance':
      return { itemHash: (await core.createInstance(action.content)).instance_id };
    case 'createProgram':
      return { itemHash: (await core.createProgram(action.content)).item_hash };
    case 'control': {
      const { instanceId, action: what, after } = action;
      return { itemHash: (await core.controlInstance(instanceId, what, after)).item_hash };
    }
    case 'update': {
      const { instanceId, changes, after } = action;
      return { itemHash: (await core.updateInstance(instanceId, changes, after)).item_hash };
    }
    case 'domain': {
      const content = claimOf(action.name, action.instanceId);
      return { itemHash: (await core.postMessage({ type: 'AGGREGATE', content })).item_hash };
    }
    case 'forget':
      return { itemHash: (await core.forget(action.hashes)).item_hash };
  }
}
