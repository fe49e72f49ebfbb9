import type { Instance } from '../data/answers.ts';
import { useNetwork } from '../data/network.ts';
import { useProof } from '../data/prove.ts';
import { Fact } from '../parts/fact.tsx';

/** A machine's address, and whether a scheduler signed it. */
export function MachineAddress({ machine: { instance_id: id, ipv6 } }: { readonly machine: Instance }) {
  const { coreUrl, info } = useNetwork();
  const schedulers = info?.trust.schedulers.value ?? [];
  const proof = useProof('address', ipv6 === '' || !info ? undefined : { coreUrl, id, ipv6, schedulers });
  return ipv6 === '' ? (
    <>none yet</>
  ) : (
    <Fact proof={proof} of="address">
      <code>{ipv6}</code>
    </Fact>
  );
}
