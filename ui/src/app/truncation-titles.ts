// A text whose end has no room says all of it in its title, once the pointer is on it: in every table, whatever cuts it off.
export function startTruncationTitles(): void {
  document.addEventListener("mouseover", ({ target }) => {
    if (!(target instanceof HTMLElement) || target.closest("td") === null) return;
    for (let one: HTMLElement | null = target; one !== null; one = one.parentElement) {
      if (isCut(one) && one.title === "") one.title = one.textContent;
      if (one.tagName === "TD") return;
    }
  });
}

/** At its end, or after its last line. */
function isCut(one: HTMLElement): boolean {
  const { overflowX, webkitLineClamp } = getComputedStyle(one);
  if (overflowX === "visible") return false;
  return (
    one.scrollWidth > one.clientWidth || (webkitLineClamp !== "none" && one.scrollHeight > one.clientHeight)
  );
}
