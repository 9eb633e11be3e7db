import { useState } from 'preact/hooks';

const NUMBER = /^\d{1,15}$/;

/** An event by its number. */
export function JumpTo({ onJump }: { readonly onJump: (number: number) => void }) {
  const [text, setText] = useState('');
  const plain = text.replaceAll(/[\s.,'’_]/g, '');
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        if (NUMBER.test(plain)) onJump(Number(plain));
      }}
    >
      <input
        class="plain small jump"
        type="text"
        inputMode="numeric"
        aria-label="Go to event number"
        placeholder="Go to number"
        autocomplete="off"
        value={text}
        aria-invalid={(plain !== '' && !NUMBER.test(plain)) || undefined}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}
