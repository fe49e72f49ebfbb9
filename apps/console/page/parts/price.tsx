import { type Cost, costText, enforcementText } from '../pure/owner/cost.ts';
import { ProofMark } from './basic.tsx';

/** What something costs, by the prices of the core node, or that it does not say so. */
export const Price = (props: { readonly title?: string; readonly cost: Cost | 'untold' }) => {
  const { title = 'It costs', cost } = props;
  if (cost === 'untold')
    return (
      <p class="stale" data-price="untold">
        The core node does not say what it costs.
      </p>
    );
  return (
    <p class="foreseen" data-price="told">
      <span class="muted">{title}</span>
      <b>{costText(cost)}</b>
      <ProofMark kind="said" of="price" label="prices of the core node" />
      <span class="muted">{enforcementText(cost)}</span>
    </p>
  );
};
