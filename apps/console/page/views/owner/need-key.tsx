import { identity } from '../../data/identity.ts';
import { linkTo } from '../../pure/route.ts';

/** Said where something is to be signed and nobody is there to sign it. */
export const NeedKey = ({ what }: { readonly what: string }) =>
  identity.value ? null : (
    <p class="stale">
      <span>
        {what} is a message that you sign: <a href={linkTo(['keys'])}>choose a wallet or make a key</a> first.
      </span>
    </p>
  );
