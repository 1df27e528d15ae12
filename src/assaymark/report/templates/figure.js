for (const el of all("[data-png]")) {
  el.hidden = false;
  el.onclick = e => {
    const svg = el.closest("figure").querySelector(".fig").cloneNode(true), image = new Image();
    const canvas = document.createElement("canvas");
    e.preventDefault();
    svg.classList.remove("wide");
    svg.style.background = "var(--bg)";
    svg.append(document.querySelector("style").cloneNode(true));
    for (const side of ["width", "height"]) svg[side].baseVal.value = canvas[side] = 2 * svg.viewBox.baseVal[side];
    image.onload = () => {
      canvas.getContext("2d").drawImage(image, 0, 0);
      el.href = canvas.toDataURL();
      el.onclick = null;
      el.click();
    };
    image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
  };
}
