import { identity } from '../../data/identity.ts';
import { route } from '../../data/place.ts';
import { linkTo } from '../../pure/route.ts';

/** Said where something is to be signed and nobody is there to sign it. */
export function NeedKey({ what }: { readonly what: string }) {
  const { parts, query } = route.value;
  return identity.value ? null : (
    <p class="stale">
      <span>
        {what} is a message that you sign:{' '}
        <a href={linkTo(['keys'], { back: linkTo(parts, query) })}>choose a wallet or make a key</a> first.
      </span>
    </p>
  );
}
