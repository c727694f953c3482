// A text that is cut off shows all of itself as its title when the pointer enters it, in every table.
export function startTruncationTitles(): void {
  document.addEventListener("mouseover", ({ target }) => {
    if (!(target instanceof HTMLElement) || target.closest("td") === null) return;
    for (let one: HTMLElement | null = target; one !== null; one = one.parentElement) {
      if (isCut(one) && one.title === "") one.title = one.textContent;
      if (one.tagName === "TD") return;
    }
  });
}

/** Cut at its end, or after its last line. */
function isCut(one: HTMLElement): boolean {
  const { overflowX, webkitLineClamp } = getComputedStyle(one);
  if (overflowX === "visible") return false;
  return (
    one.scrollWidth > one.clientWidth || (webkitLineClamp !== "none" && one.scrollHeight > one.clientHeight)
  );
}
