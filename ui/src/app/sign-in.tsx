// The sign-in form, shown before the token is known.
import { useRef } from "preact/hooks";
import { denied, unlock } from "../data/api.ts";
import { Logo } from "../kit/icons.tsx";

export function SignIn() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <main class="sign-in">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          const value = input.current?.value.trim() ?? "";
          if (value !== "") void unlock(/token=([\w-]+)/.exec(value)?.[1] ?? value);
        }}
      >
        <span class="brand">
          <Logo /> Holdfast
        </span>
        <h1 class="hidden-text">Sign in</h1>
        <p class="muted">Open the address that the server printed, or enter its token.</p>
        <label class="field">
          <span>Token</span>
          <input ref={input} class="input mono" type="password" autocomplete="off" autofocus />
        </label>
        {denied.value !== null && (
          <div class="banner bad" role="alert">
            {denied.value}
          </div>
        )}
        <button type="submit" class="button primary">
          Open
        </button>
      </form>
    </main>
  );
}
