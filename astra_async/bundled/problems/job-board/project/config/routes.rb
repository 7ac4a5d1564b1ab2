Rails.application.routes.draw do
  resources :jobs, only: %i[index create] do
    post :applications, on: :member, action: :apply
  end
end
