import type { RefusedMessage } from '@skerry/client';
import { messageLink } from '../data/network.ts';
import { Hash, ProofMark, Safe } from './basic.tsx';

const SHOWN = 10;

/** Messages that a check in this tab refused, each with its reason; nothing where there is none. */
export const RefusedList = ({ refused }: { readonly refused: readonly RefusedMessage[] }) =>
  refused.length === 0 ? null : (
    <ul class="lines">
      {refused.slice(0, SHOWN).map(({ itemHash, code, message }) => (
        <li key={itemHash}>
          <ProofMark kind="wrong" of="message" message={itemHash} why={message} label={code} />
          <Hash value={itemHash} href={messageLink(itemHash)} />
          <span class="muted">
            <Safe text={message} />
          </span>
        </li>
      ))}
    </ul>
  );
