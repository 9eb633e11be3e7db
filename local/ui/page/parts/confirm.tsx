import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { Field, Form } from './form.tsx';
import { TypedName } from './typed-name.tsx';

export interface Question {
  readonly title: string;
  /** What will happen, and whether it can be undone. */
  readonly text: ComponentChildren;
  /** What the button says: the deed, such as `Delete user`. */
  readonly action: string;
  readonly isDanger?: boolean;
  /** What has to be typed first, for what can't be undone. */
  readonly typed?: string;
  /** Done while the dialog waits; what it rejects with is shown there. */
  readonly run?: () => Promise<void>;
}

const asked = signal<(Question & { readonly answer: (isYes: boolean) => void }) | null>(null);

/** Asks before something is done; resolves with whether it is (or has been, with `run`). */
export function confirm(question: Question): Promise<boolean> {
  asked.peek()?.answer(false);
  return new Promise((resolve) => {
    asked.value = {
      ...question,
      answer: (isYes) => {
        asked.value = null;
        resolve(isYes);
      },
    };
  });
}

export function ConfirmHost() {
  const question = asked.value;
  const close = () => question?.answer(false);
  return (
    <Dialog title={question?.title ?? ''} isOpen={question !== null} onClose={close} size="small">
      {question !== null && (
        <Form
          validate={({ typed }): Record<string, string> =>
            question.typed !== undefined && typed !== question.typed ? { typed: 'This does not match the name.' } : {}
          }
          onSubmit={async () => {
            await question.run?.();
            question.answer(true);
          }}
          buttons={(isBusy) => (
            <>
              <Button onClick={close}>Cancel</Button>
              <Button type="submit" kind={question.isDanger === true ? 'danger' : 'primary'} isBusy={isBusy}>
                {question.action}
              </Button>
            </>
          )}
        >
          <div class="prose">{question.text}</div>
          {question.typed !== undefined && (
            <>
              <TypedName text={question.typed} />
              <Field name="typed" label="Type this name to confirm" isRequired isFocused spellcheck={false} />
            </>
          )}
        </Form>
      )}
    </Dialog>
  );
}
