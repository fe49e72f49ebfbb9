import { act } from '../../data/act.ts';
import { useAction } from '../../data/action.ts';
import type { Instance } from '../../data/answers.ts';
import { Field, Form } from '../../parts/form.tsx';
import { Failed } from '../../parts/states.tsx';

/** What its owner calls a machine, to change. Its host name follows from its hash, and stays. */
export function MachineName({ machine }: { readonly machine: Instance }) {
  const { instance_id: instanceId, name, updated_at: after } = machine;
  const doing = useAction((changed: string) =>
    act({ kind: 'update', instanceId, changes: { name: changed }, after }),
  );
  return (
    <>
      <Form
        key={name}
        label="rename"
        button="Rename"
        isBusy={doing.state.kind === 'running'}
        onSend={({ name: changed = '' }) => doing.run(changed)}
      >
        <Field name="name" label="Name, as you call it" value={name} isRequired />
      </Form>
      {doing.state.kind === 'failed' ? <Failed failure={doing.state.failure} /> : null}
    </>
  );
}
